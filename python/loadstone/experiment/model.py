"""What an experiment file may hold: its keys, their types, defaults and meanings.

This is the source of the reference page and of the JSON Schema. Here each value is looked at alone; what must fit
together is looked at in `loadstone.experiment.examination`. Short forms (`repeats: 6`) have been written out by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, create_model

from loadstone.experiment.system import Hooks, System
from loadstone.experiment.values import (
    Arrival,
    Bound,
    Claim,
    Count,
    Durability,
    Length,
    LengthOrNone,
    Most,
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

if TYPE_CHECKING:
    from loadstone.results.result_set import Question

# A spread takes two.
REPEATS_LEAST = 2
AT_LEAST_HINT = "one trial shows no spread, and a claim takes 6"
DURATION_SECONDS = 10.0
WARMUP_SECONDS = 2.0
AT_MOST_FACTOR = 3


class Workload(Part):
    """What is done. A string is the `file`."""

    file: Text = Field(
        description="A YCSB workload file.",
        examples=["../workloads/workload{letter}"],
    )
    properties: dict[str, Property] = Field(
        default={},
        description="YCSB's properties; they override the file's.",
        examples=[{"recordcount": 100000}],
    )


class Vary(Part):
    """What differs between variants: these keys, or the `matrix` itself."""

    matrix: dict[str, tuple[Value, ...]] = Field(
        default={},
        description="Dimensions with their values; the variants are all combinations.",
        examples=[{"system": ["rocksdb", "lmdb"], "letter": ["a", "c"]}],
    )
    zip: dict[str, tuple[Value, ...]] = Field(
        default={},
        description="Dimensions whose values are paired: first with first, and so on.",
        examples=[{"clients": [1, 2], "rate": [1000, 2000]}],
    )
    include: tuple[dict[str, Value], ...] = Field(
        default=(),
        description="Further variants; each names every dimension.",
        examples=[[{"system": "lmdb", "letter": "b"}]],
    )
    exclude: tuple[dict[str, Value], ...] = Field(
        default=(),
        description="Leaves out all variants with these values.",
        examples=[[{"system": "lmdb", "letter": "c"}]],
    )


class Measure(Part):
    """How long each trial is measured."""

    warmup: LengthOrNone | None = Field(
        default=None,
        description="Time under load before the window. Default: what the pilot block finds, `2s` without.",
        examples=["1s"],
    )
    duration: Length | None = Field(
        default=None,
        description="Length of the window. Default: `10s`, unless `operations` is given.",
        examples=["5s"],
    )
    operations: Count | None = Field(
        default=None, description="Operations of the window, instead of a duration.", examples=[1000000]
    )
    settle: Truth = Field(
        default=True,
        description="Wait after the load until the store is idle and its files are on the device, or until servers that"
        " the lab started use less than a quarter of a processor for 1 s; at most 5 minutes.",
    )
    verify: Truth = Field(default=False, description="Check every value read (YCSB's `dataintegrity`).")


class Load(Part):
    """How the data of a trial are loaded."""

    reuse: Reuse = Field(
        default=False,
        description="false: each trial loads a fresh store. copy: data are loaded once, and each trial works on a copy;"
        " on servers on the table itself, which the workload must not change. shared: trials use the servers' data as"
        " earlier trials have left them.",
        examples=["copy"],
    )
    clients: Count | None = Field(
        default=None, description="Clients of the load. Default: those of the trial.", examples=[32]
    )
    properties: dict[str, Property] = Field(
        default={},
        description="Store properties of the load; they override the system's.",
        examples=[{"clientbuffering": True}],
    )


class Fleet(Part):
    """How many engines run, on this machine."""

    engines: Count = Field(
        default=1,
        description="Engine processes that share the clients, rate and operations of a trial. For networked stores.",
        examples=[4],
    )


class Repeats(Part):
    """How often each variant is tried. A number is both bounds."""

    at_least: Annotated[int, whole(REPEATS_LEAST, AT_LEAST_HINT), schema("integer", minimum=REPEATS_LEAST)] = Field(
        default=6, description="Repeats of each variant; below 6 there is no claim.", examples=[6]
    )
    at_most: Count | None = Field(
        default=None,
        description="Limit for `until`. Default: `at_least`, or three times that with `until`.",
        examples=[10],
    )
    until: Share | None = Field(
        default=None,
        description="Stop when the interval of the first compared metric is this narrow, as a share of the figure. At a"
        " rate that is a latency, unless `compare.metrics` begins with throughput.",
        examples=["5%"],
    )


class Compare(Part):
    """What the report compares."""

    by: Text | None = Field(
        default=None,
        description="The dimension. Default: `system` if it varies, else the first.",
        examples=["system"],
    )
    baseline: Value | None = Field(
        default=None, description="The value that others are compared with. Default: the first.", examples=["lmdb"]
    )
    promises: tuple[Promised, ...] = Field(
        default=(),
        description="Guarantees that differ on purpose: their cost is what is compared.",
        examples=[["durability"]],
    )
    metrics: tuple[Text, ...] = Field(
        default=(),
        description="The figures. Default: throughput and p99 of reads, updates and inserts.",
        examples=[["throughput", "read.p99"]],
    )
    matters: Share = Field(
        default=0.01,
        description="The least difference that matters: smaller ones are not claimed.",
        examples=["2%"],
    )


class Search(Part):
    """A search for the load at which the systems saturate."""

    max: Most = Field(default="throughput", description="What is maximised.", examples=["throughput"])
    such_that: Text | None = Field(
        default=None,
        description="The objective, such as `read.p99.9 < 5ms and errors == 0`: the highest load that meets it is"
        " searched for. Without it: the knee.",
        examples=["p99 < 10ms"],
    )
    over: Raised = Field(
        default="clients", description="What is raised: clients of a closed loop, or the rate.", examples=["rate"]
    )

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

    question: Text = Field(default="", description="What you want to know.", examples=["Which store is faster?"])
    systems: dict[str, System] = Field(
        description="The systems, by names of your own; or a list of stores.",
        examples=[{"rocksdb": {}, "lmdb": {"store": "lmdb"}}],
        min_length=1,
    )
    workload: Workload = Field(description=str(Workload.__doc__), examples=[{"file": "../workloads/workloada"}])
    durability: Durability = Field(
        default="os",
        description="What an acknowledged write survives: nothing, the end of the process (os), or the end of the"
        " machine (device).",
        examples=["device"],
    )
    clients: Count = Field(default=1, description="Clients, each with at most one operation in flight.", examples=[8])
    rate: Rate | None = Field(
        default=None, description="Operations per second over all clients; else a closed loop.", examples=[10000]
    )
    arrival: Arrival = Field(default="uniform", description="Spacing of due times at a rate.", examples=["poisson"])
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
    pilot: Truth | None = Field(
        default=None,
        description="Find the warm-up in a first block that does not count. Default: true without `measure.warmup`,"
        " `measure.operations` and `find`.",
        examples=[False],
    )
    hooks: Hooks = Field(default=Hooks(), description=str(Hooks.__doc__), examples=[{"before": ["echo {system}"]}])
    compare: Compare = Field(
        default=Compare(), description=str(Compare.__doc__), examples=[{"by": "system", "baseline": "lmdb"}]
    )
    claims: Claim | None = Field(
        default=None,
        description="device: results from the page cache are invalid.",
        examples=["device"],
    )
    checks: dict[str, dict[str, Number]] = Field(
        default={}, description="Thresholds of the judge's checks.", examples=[{"littles-law": {"low": 0.9}}]
    )
    directory: Text | None = Field(
        default=None,
        description="Where the data of trials are. Default: `$TMPDIR`, else `/var/tmp`.",
        examples=["/mnt/nvme"],
    )
    seed: Natural = Field(default=1, description="Seed of the order of trials and of everything random in them.")
    timeout: Length | None = Field(default=None, description="Limit for one phase of a trial.", examples=["10m"])

    @property
    def warmup_seconds(self) -> float:
        """How long trials warm up; 0 as long as the pilot has not found it."""
        return self.measure.warmup or 0.0

    def question_for_judge(self) -> Question:
        """What the judge and the report need to know of this."""
        from loadstone.results.result_set import Question

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
