"""What an experiment file may hold: its keys, their types, defaults and meanings.

This is the source of the reference page and of the JSON Schema. Here each value is looked at alone; what must fit
together is looked at in `loadstone.experiment.validation`. Short forms (`repeats: 6`) have been written out by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, create_model

from loadstone.experiment.model.system import Hooks, System
from loadstone.experiment.model.values import (
    Arrival,
    Bound,
    Count,
    Durability,
    Length,
    LengthOrNone,
    Natural,
    Number,
    Part,
    Promised,
    Property,
    Raised,
    Rate,
    Reuse,
    Share,
    Text,
    Truth,
    Value,
    schema,
    whole,
)
from loadstone.results.result_set import Question

# A spread takes two.
REPEATS_LEAST = 2
AT_LEAST_HINT = "one trial shows no spread, and a claim takes 6"
DURATION_SECONDS = 10.0
WARMUP_SECONDS = 2.0
AT_MOST_FACTOR = 3


class Workload(Part):
    """What is done. A text alone is its `file`."""

    file: Text = Field(examples=["../workloads/workload{letter}"])
    """A YCSB workload file; relative to the experiment file, else to the current directory."""

    properties: dict[str, Property] = Field(default={}, examples=[{"recordcount": 100000}])
    """YCSB's properties by their known names; they come before the file's."""


class Vary(Part):
    """What differs between variants. Without any of these four keys, it is itself the `matrix`."""

    matrix: dict[str, tuple[Value, ...]] = Field(
        default={}, examples=[{"system": ["rocksdb", "lmdb"], "letter": ["a", "c"]}]
    )
    """Dimensions with their values; the variants are all combinations."""

    zip: dict[str, tuple[Value, ...]] = Field(default={}, examples=[{"clients": [1, 2], "rate": [1000, 2000]}])
    """Dimensions that move together: first values with first values, and so on."""

    include: tuple[dict[str, Value], ...] = Field(default=(), examples=[[{"system": "lmdb", "letter": "b"}]])
    """Further variants; each names every dimension."""

    exclude: tuple[dict[str, Value], ...] = Field(default=(), examples=[[{"system": "lmdb", "letter": "c"}]])
    """Variants to leave out: all that have these values."""


# The keys of the long form of `vary`.
LONG = tuple(Vary.model_fields)


class Measure(Part):
    """How long each trial is measured."""

    warmup: LengthOrNone | None = Field(default=None, examples=["1s"])
    """Time before the measured window, under load. Default: what the pilot block finds, `2s` without."""

    duration: Length | None = Field(default=None, examples=["5s"])
    """Length of the measured window. Default: `10s`, unless `operations` is given."""

    operations: Count | None = Field(default=None, examples=[1000000])
    """Operations of the measured window, instead of a duration."""

    settle: Truth = True
    """Wait after the load until the store is idle and its files are on the device. Servers that the lab started are
    idle when they use less than a quarter of a processor for a second; it waits five minutes at most."""

    verify: Truth = False
    """Compare every value read with what must be there (YCSB's `dataintegrity`)."""


class Load(Part):
    """Where the data of a trial come from, and how they get there."""

    reuse: Reuse = Field(default=False, examples=["copy"])
    """false: each trial loads a fresh store. copy: data are loaded once for each system and kind of data, and each
    trial works on a copy; a table on servers is not copied but used again, so the workload must not change it.
    shared: trials use what is on the servers as the trials before have left it."""

    clients: Count | None = Field(default=None, examples=[32])
    """Clients that load. Default: those of the trial."""

    properties: dict[str, Property] = Field(default={}, examples=[{"clientbuffering": True}])
    """Properties of stores that hold while they are loaded; they come before those of the system."""


class Fleet(Part):
    """Where engines run: so far, on this machine."""

    engines: Count = Field(default=1, examples=[4])
    """Engine processes that share the load of each trial: its clients, its rate and its operations. They start
    together, and their histograms are merged exactly. For stores reached by network."""


class Repeats(Part):
    """How often each variant is tried. A number alone is both bounds."""

    at_least: Annotated[int, whole(REPEATS_LEAST, AT_LEAST_HINT), schema("integer", minimum=REPEATS_LEAST)] = Field(
        default=6, examples=[6]
    )
    """Repeats of each variant; fewer than 6 allow no claim."""

    at_most: Count | None = Field(default=None, examples=[10])
    """Where to stop if the interval stays wide. Default: `at_least`, or three times that with `until`."""

    until: Share | None = Field(default=None, examples=["5%"])
    """Stop when the interval of the first metric that is compared is this narrow: its whole width, as a share of the
    figure. At a rate that is a latency, unless `compare.metrics` begins with throughput."""


class Compare(Part):
    """What the report compares."""

    by: Text | None = Field(default=None, examples=["system"])
    """The dimension. Default: `system` if it varies, else the first one that does."""

    baseline: Value | None = Field(default=None, examples=["lmdb"])
    """Its value that the others are compared with. Default: its first."""

    promises: tuple[Promised, ...] = Field(default=(), examples=[["durability"]])
    """Promises that its values differ in on purpose, so that their price is what is compared."""

    metrics: tuple[Text, ...] = Field(default=(), examples=[["throughput", "read.p99"]])
    """The figures. Default: throughput and p99 of reads, updates and inserts."""

    matters: Share = Field(default=0.01, examples=["2%"])
    """The least difference that matters. A smaller one is not claimed, and two sides that are surely nearer to each
    other are said not to differ."""


class Search(Part):
    """The load at which the systems saturate, searched for instead of varied."""

    max: Literal["throughput"] = Field(default="throughput", examples=["throughput"])
    """What more load is to bring."""

    such_that: Text | None = Field(default=None, examples=["p99 < 10ms"])
    """What must hold, as `p99 < 10ms`, `read.p99.9 < 5ms and errors == 0`: the highest load that meets it is searched
    for. Without it: the knee, the least load that reaches 95 % of the highest throughput."""

    over: Raised = Field(default="clients", examples=["rate"])
    """What is raised: clients in a closed loop, or the rate."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the search begins, and how far it goes; those of an experiment that was examined."""
        first, last = (float(getattr(self, key)) for key in ("from", "to"))
        return first, last


if TYPE_CHECKING:
    Find = Search
else:
    # Python keeps the word `from` to itself.
    Find = create_model(
        "Find",
        __base__=Search,
        __doc__=Search.__doc__,
        **{
            "from": (
                Bound | None,
                Field(default=None, description="The first load. Default: 1 client, or 1000 a second.", examples=[4]),
            ),
            "to": (
                Bound | None,
                Field(default=None, description="The last. Default: 1024 clients, or 1000000 a second.", examples=[64]),
            ),
        },
    )


class Experiment(Part):
    """An experiment: a question, and how to answer it."""

    question: Text = Field(default="", examples=["Which store is faster?"])
    """What you want to know, in a sentence."""

    systems: dict[str, System] = Field(examples=[{"rocksdb": {}, "lmdb": {"store": "lmdb"}}], min_length=1)
    """The systems by names of your own. A list of stores' names will do."""

    workload: Workload = Field(description=str(Workload.__doc__), examples=[{"file": "../workloads/workloada"}])
    durability: Durability = Field(default="os", examples=["device"])
    """What a write that was acknowledged survives: none promises nothing, os the end of the process, device the end of
    the machine."""

    clients: Count = Field(default=1, examples=[8])
    """Clients, each with one operation under way at most."""

    rate: Rate | None = Field(default=None, examples=[10000])
    """Operations per second over all clients; without it, a closed loop."""

    arrival: Arrival = Field(default="uniform", examples=["poisson"])
    """The spacing of due times at a rate."""

    vary: Vary = Field(default=Vary(), description=str(Vary.__doc__), examples=[{"system": ["rocksdb", "lmdb"]}])
    find: Find | None = Field(default=None, description=str(Search.__doc__), examples=[{"such_that": "p99 < 10ms"}])
    measure: Measure = Field(
        default=Measure(), description=str(Measure.__doc__), examples=[{"warmup": "1s", "duration": "5s"}]
    )
    load: Load = Field(default=Load(), description=str(Load.__doc__), examples=[{"reuse": "copy"}])
    fleet: Fleet = Field(default=Fleet(), description=str(Fleet.__doc__), examples=[{"engines": 4}])
    repeats: Repeats = Field(
        default=Repeats(), description=str(Repeats.__doc__), examples=[{"at_least": 6, "at_most": 20, "until": "5%"}]
    )
    pilot: Truth | None = Field(default=None, examples=[False])
    """Whether a first block, which does not count, finds out how long the warm-up must be: every variant once, for
    three times the window. Default: true where no warm-up is given, trials last for a time, and no load is searched
    for."""

    hooks: Hooks = Field(default=Hooks(), description=str(Hooks.__doc__), examples=[{"before": ["echo {system}"]}])
    compare: Compare = Field(
        default=Compare(), description=str(Compare.__doc__), examples=[{"by": "system", "baseline": "lmdb"}]
    )
    claims: Literal["device"] | None = Field(default=None, examples=["device"])
    """device: the results are said to be the device's, so the page cache makes them invalid."""

    checks: dict[str, dict[str, Number]] = Field(default={}, examples=[{"littles-law": {"low": 0.9}}])
    """Thresholds of the judge's checks."""

    directory: Text | None = Field(default=None, examples=["/mnt/nvme"])
    """Where the data are while a trial needs them. Default: `TMPDIR` of the environment if set, else `/var/tmp`."""

    seed: Natural = 1
    """Order of the trials and all that is random in them follow from it."""

    timeout: Length | None = Field(default=None, examples=["10m"])
    """The most that one phase of a trial may take."""

    @property
    def warmup_seconds(self) -> float:
        """How long trials warm up; 0 as long as the pilot has not found it."""
        return self.measure.warmup or 0.0

    def question_for_judge(self) -> Question:
        """What the judge and the report need to know of this."""
        return Question(
            text=self.question,
            by=self.compare.by,
            baseline=self.compare.baseline,
            metrics=self.compare.metrics,
            promises=self.compare.promises,
            matters=self.compare.matters,
            at_least=self.repeats.at_least,
            at_most=self.repeats.at_most,
            until=self.repeats.until,
            claims=self.claims,
            verify=self.measure.verify,
            checks=self.checks,
            find=self.find.model_dump(mode="json") if self.find else None,
        )
