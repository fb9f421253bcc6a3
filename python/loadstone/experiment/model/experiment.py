"""The model of an experiment file: its keys, their types, defaults and meanings.

This is the source of the reference page and of the JSON Schema. Here, each value is validated alone;
`loadstone.experiment.validation` checks the consistency of all values. Short forms (`repeats: 6`) are expanded
beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from loadstone.experiment.model.faults import FaultKeys
from loadstone.experiment.model.stages import NumberOrStages, Stage, Stages
from loadstone.experiment.model.system import Hooks, SystemKeys
from loadstone.experiment.model.values import (
    Arrival,
    Boolean,
    Bound,
    Count,
    Durability,
    FilePart,
    Label,
    Length,
    LengthOrNone,
    Natural,
    Number,
    Placement,
    Property,
    Reuse,
    Scalar,
    SearchedLoad,
    Share,
    Shares,
    Text,
    Value,
)
from loadstone.experiment.model.vary import Vary
from loadstone.results.result_set import Question
from loadstone.search.rule import CONFIRMATIONS

DURATION_SECONDS = 10.0
WARMUP_SECONDS = 2.0
AT_MOST_FACTOR = 3
# In units of the experiment's window: the longest warm-up that the pilot block can find, and the time that follows it.
PILOT_CAP, PILOT_WINDOWS = 1.5, 2.0


class Workload(FilePart):
    """The work of trials: the keys of a YCSB workload, or the key of one other kind. A string is short for `file`."""

    if TYPE_CHECKING:
        # Each workload kind adds its keys (`add_kinds`).
        def __getattr__(self, key: str) -> Any: ...

    @property
    def kinds(self) -> list[str]:
        """The kinds whose keys are set."""
        used_kinds = {KIND_OF_KEY[key] for key in self.model_fields_set}
        return [kind for kind in dict.fromkeys(KIND_OF_KEY.values()) if kind in used_kinds]

    def keys_of_kind(self, kind: str) -> FilePart:
        """The keys of a kind."""
        return getattr(self, kind) if kind in self.model_fields_set else self


# The workload kind to which each key of `workload` belongs.
KIND_OF_KEY: dict[str, str] = {}


class Measure(FilePart):
    """The length of the measurement in each trial."""

    warmup: LengthOrNone | None = Field(default=None, examples=["1s"])
    """Time under load before the window. Default: found by the pilot block, or `2s` without a pilot block."""

    duration: Length | None = Field(default=None, examples=["5s"])
    """Length of the window. Default: `10s`, unless `operations` is set."""

    operations: Count | None = Field(default=None, examples=[1000000])
    """Number of operations in the window, instead of a duration."""

    settle: Boolean = True
    """Wait after the load until the store is idle and its files are on the device, or until servers that the lab
    started use less than a quarter of a processor for 1 s; at most 5 minutes."""

    verify: Boolean = False
    """Check every value read (YCSB's `dataintegrity`)."""

    ledger: Boolean = False
    """Record the outcome of every write, and find missing acknowledged writes by a read-back after each trial.
    Available for YCSB workloads and rows of `cassandra-stress`; each trial loads a fresh store."""

    interval: Length | None = Field(default=None, examples=["100ms"])
    """Length of the intervals in which operations are counted. Default: `100ms` with `faults`, else `1s`, or shorter so
    that a window has 20 intervals."""

    deadline: Length | None = Field(default=None, examples=["250ms"])
    """Operations that succeed more than this time after they were due (in a closed loop: sent) are counted as late."""


class LoadKeys(FilePart):
    """The loading of a trial's data."""

    reuse: Reuse = Field(default=False, examples=["copy"])
    """false: each trial loads a fresh store. copy: data is loaded once, and each trial uses a copy; on servers, each
    trial uses the table itself, which the workload must not change. shared: trials use the data on the servers as
    earlier trials left it."""

    clients: Count | None = Field(default=None, examples=[32])
    """Number of clients for the load. Default: the number of the trial's clients."""

    properties: dict[str, Property] = Field(default={}, examples=[{"clientbuffering": True}])
    """Store properties for the load; they override the system's properties."""


class HostGroup(FilePart):
    """Hosts of a cluster, selected by their label."""

    label: Label | None = Field(default=None, examples=["role=clients"])
    """A label `KEY=VALUE` of these hosts."""


class FleetHosts(FilePart):
    """The hosts for clients, and the hosts on which the servers run."""

    clients: HostGroup = Field(
        default=HostGroup(), description="Hosts for clients.", examples=[{"label": "role=clients"}]
    )
    servers: HostGroup = Field(
        default=HostGroup(), description="Hosts of the servers.", examples=[{"label": "role=servers"}]
    )


class FleetKeys(FilePart):
    """The location and number of load generators."""

    on: Literal["local", "ray"] = Field(default="local", examples=["ray"])
    """local: this machine. ray: the hosts of a Ray cluster, for networked stores (`pip install 'ray>=2.60,<3'`)."""

    address: Text = Field(default="auto", examples=["10.0.0.1:6379"])
    """The head node of the Ray cluster. `auto`: this machine."""

    engines: Count = Field(default=1, examples=[4])
    """Number of load generators that share the clients, rate and operations of a trial. Available for networked
    stores, files and sorts; for commands and fio, the number of hosts that run them once."""

    per_host: Count | None = Field(default=None, examples=[1])
    """Number of load generators on each host, instead of `engines`."""

    placement: Placement = Field(default="apart", examples=["role=clients"])
    """Hosts of the load generators: `apart` (hosts without servers), `beside` (the hosts of the servers), or a label
    `KEY=VALUE`."""

    hosts: FleetHosts = Field(
        default=FleetHosts(),
        description=str(FleetHosts.__doc__),
        examples=[{"clients": {"label": "role=clients"}, "servers": {"label": "role=servers"}}],
    )


class Repeats(FilePart):
    """The number of repeats of each variant. A number sets both bounds."""

    at_least: Count = Field(default=6, examples=[6])
    """Minimum number of repeats of each variant. With fewer than 6, no claim is made; a single repeat has no
    interval."""

    at_most: Count | None = Field(default=None, examples=[10])
    """Maximum number of repeats with `until`. Default: `at_least`; with `until`, three times `at_least`."""

    until: Shares | None = Field(default=None, examples=[{"throughput": "5%", "read.p99": "10%"}, "5%"])
    """Stop when the intervals of these metrics are this narrow, as fractions of the figures. A single fraction applies
    to the first compared metric: at a rate, that is a latency, unless `compare.metrics` contains only throughput."""


class Compare(FilePart):
    """The comparison in the report."""

    by: Text | None = Field(default=None, examples=["system"])
    """The dimension to compare. Default: `system` if it varies, else the first dimension."""

    baseline: Value | None = Field(default=None, examples=["lmdb"])
    """The value with which the other values are compared. Default: the first value."""

    guarantees: tuple[Text, ...] = Field(default=(), examples=[["durability"]])
    """Facts that differ on purpose, because the comparison measures their cost: guarantees, or other recorded facts."""

    promises: tuple[Text, ...] = Field(default=(), examples=[["durability"]])
    """Former name of `guarantees`."""

    metrics: tuple[Text, ...] = Field(default=(), examples=[["throughput", "read.p99"]])
    """The figures to compare. Default: throughput, and p99 and p50 of reads, updates and inserts."""

    repeats: Boolean = False
    """Show each repeat as well, with the averages and the deviations from them."""

    matters: Share = Field(default=0.01, examples=["2%"])
    """The smallest difference that matters: smaller differences are not claimed."""


class FindKeys(FilePart):
    """A search for the load at which the systems saturate."""

    max: Literal["throughput"] = Field(default="throughput", examples=["throughput"])
    """The figure to maximise."""

    such_that: Text | None = Field(default=None, examples=["p99 < 10ms"])
    """The objective, such as `read.p99.9 < 5ms and errors == 0`: the search finds the highest load that meets it.
    Without an objective, the search finds the knee."""

    over: SearchedLoad = Field(default="clients", examples=["rate"])
    """The load that is increased: the clients of a closed loop, or the rate."""


# The bounds of a search, with their meanings and examples; `from` is a keyword of Python.
BOUNDS: dict[str, tuple[str, int]] = {
    "from": ("The first load. Default: 1 client, or 1000 operations per second.", 4),
    "to": ("The last load. Default: 1024 clients, or 1000000 operations per second.", 64),
}
if TYPE_CHECKING:
    Find = FindKeys
else:
    bounds = {
        key: (Bound | None, Field(default=None, description=meaning, examples=[example]))
        for key, (meaning, example) in BOUNDS.items()
    }
    Find = create_model("Find", __base__=FindKeys, __doc__=FindKeys.__doc__, **bounds)


class Experiment(FilePart):
    """An experiment: a question, and the way to answer it."""

    question: Text = Field(default="", examples=["Which store is faster?"])
    """Your question."""

    systems: dict[str, SystemKeys] = Field(examples=[{"rocksdb": {}, "lmdb": {"store": "lmdb"}}], min_length=1)
    """The systems, under names of your choice; or a list of stores."""

    workload: Workload = Field(description=str(Workload.__doc__), examples=[{"file": "../workloads/workloada"}])
    workloads: dict[str, Workload] = Field(
        default={}, examples=[{"a": "../workloads/workloada", "c": {"file": "../workloads/workloadc"}}]
    )
    """Several workloads, under names of your choice, instead of `workload`; the names form the dimension `workload`."""

    durability: Durability = Field(default="os", examples=["device"])
    """The crash that an acknowledged write survives: none, a crash of the process (os), or of the machine (device)."""

    clients: Count = Field(default=1, examples=[8])
    """Number of clients, each with at most one operation in flight."""

    rate: Annotated[float | Stages | None, NumberOrStages()] = Field(default=None, examples=[10000])
    """Operations per second of all clients together, or `stages` (ramps, steps and spikes). Without a rate, the loop
    is closed."""

    arrival: Arrival = Field(default="uniform", examples=["poisson"])
    """Spacing of the due times at a rate."""

    vary: Vary = Field(default=Vary(), description=str(Vary.__doc__), examples=[{"system": ["rocksdb", "lmdb"]}])
    find: Find | None = Field(default=None, description=str(FindKeys.__doc__), examples=[{"such_that": "p99 < 10ms"}])
    measure: Measure = Field(
        default=Measure(), description=str(Measure.__doc__), examples=[{"warmup": "1s", "duration": "5s"}]
    )
    faults: tuple[FaultKeys, ...] = Field(default=(), examples=[[{"do": "kill", "at": "60s", "lift": "10s"}]])
    """Faults in the measured window. The servers and instants are drawn from the seed and the repeat number, and are
    the same for all variants of a block."""

    load: LoadKeys = Field(default=LoadKeys(), description=str(LoadKeys.__doc__), examples=[{"reuse": "copy"}])
    fleet: FleetKeys = Field(default=FleetKeys(), description=str(FleetKeys.__doc__), examples=[{"engines": 4}])
    repeats: Repeats = Field(
        default=Repeats(), description=str(Repeats.__doc__), examples=[{"at_least": 6, "at_most": 20, "until": "5%"}]
    )
    pilot: Boolean | None = Field(default=None, examples=[False])
    """Find the warm-up in a first block whose results are not used. Default: true without `measure.warmup`,
    `measure.operations` and `find`."""

    hooks: Hooks = Field(default=Hooks(), description=str(Hooks.__doc__), examples=[{"before": ["echo {system}"]}])
    compare: Compare = Field(
        default=Compare(), description=str(Compare.__doc__), examples=[{"by": "system", "baseline": "lmdb"}]
    )
    expect: tuple[Text, ...] = Field(default=(), examples=[["read.p99 < 10ms", "errors == 0", "throughput >= 0.95x"]])
    """Conditions that the results must meet: for each variant, or with `x` for its ratio to the baseline. `loadstone
    run` exits with 1 if a condition is false, and with 3 if one is undecided. A string is a single condition."""

    claims: Literal["device"] | None = Field(default=None, examples=["device"])
    """device: results from the page cache are invalid."""

    checks: dict[str, dict[str, Number]] = Field(default={}, examples=[{"littles-law": {"low": 0.9}}])
    """Thresholds of the judge's checks."""

    directory: Text | None = Field(default=None, examples=["/mnt/nvme"])
    """Directory for the data of trials. Default: `$TMPDIR`, else `/var/tmp`."""

    seed: Natural = 1
    """Seed for the order of trials and for all random choices in them."""

    timeout: Length | None = Field(default=None, examples=["10m"])
    """Time limit for one phase of a trial."""

    @property
    def all_workloads(self) -> dict[tuple[str | int, ...], Workload]:
        """Every workload, keyed by its path in the file."""
        several: dict[tuple[str | int, ...], Workload] = {
            ("workloads", name): workload for name, workload in self.workloads.items()
        }
        return several or {("workload",): self.workload}

    @property
    def kinds(self) -> list[str]:
        """The distinct workload kinds, in the order of the file."""
        return list(dict.fromkeys(kind for workload in self.all_workloads.values() for kind in workload.kinds))

    def workload_at(self, point: Mapping[str, Scalar]) -> tuple[str | int, ...]:
        """The path of the workload of a point."""
        return ("workloads", str(point["workload"])) if self.workloads else ("workload",)

    def hooks_of(self, system: str) -> dict[str, tuple[str, ...]]:
        """The commands before and after a system's trials; the system's hooks run closest to the trial."""
        outer, inner = self.hooks, self.systems[system].hooks
        return {"before": outer.before + inner.before, "after": inner.after + outer.after}

    @property
    def constant_rate(self) -> float | None:
        """The rate in op/s; None if there is no rate, or if it has stages."""
        return None if isinstance(self.rate, Stages) else self.rate

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a changing rate; empty for a constant rate."""
        return self.rate.stages if isinstance(self.rate, Stages) else ()

    def template_values(self, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The values for template names at a point, except values known only at run time; unset keys have no value."""
        system = self.systems.get(str(point.get("system", "")))
        by_name = {
            "clients": self.clients,
            "durability": self.durability,
            "arrival": self.arrival,
            "placement": self.fleet.placement,
            "rate": drop_fraction(self.constant_rate),
            "operations": self.measure.operations,
            "duration": drop_fraction(self.measure.duration),
            **self.vary.settings_at(point),
            **point,
            "store": system.store if system else None,
        }
        return {name: value for name, value in by_name.items() if value is not None}

    @property
    def warmup_seconds(self) -> float:
        """The length of the warm-up; 0 until the pilot has found it."""
        return self.measure.warmup or 0.0

    def question_for_judge(self) -> Question:
        """The parts of the experiment that the judge and the report need."""
        return Question(
            text=self.question,
            **self.compare.model_dump(exclude={"guarantees", "promises"}),
            promises=(*self.compare.guarantees, *self.compare.promises),
            **self.repeats.model_dump(),
            claims=self.claims,
            verify=self.measure.verify,
            checks=self.checks,
            expect=self.expect,
            find={**self.find.model_dump(mode="json"), "confirmations": CONFIRMATIONS} if self.find else None,
        )


def add_kinds(plain: str, kinds: Mapping[str, type[FilePart]]) -> None:
    """Adds the keys of kinds to `workload`: below the kind's name, or directly for the kind named `plain`."""
    for name, model in kinds.items():
        if name == plain:
            fields = model.model_fields
        else:
            described = str(model.__doc__)
            example: Any = {
                key: field.examples[0]
                for key, field in model.model_fields.items()
                if field.is_required() and field.examples
            }
            fields = {name: FieldInfo(annotation=model | None, default=None, description=described, examples=[example])}  # type: ignore[arg-type]
        for key, field in fields.items():
            KIND_OF_KEY[key] = name
            Workload.__pydantic_fields__[key] = field
    for model in (Workload, Experiment):
        model.model_rebuild(force=True)


def drop_fraction(value: float | None) -> float | None:
    """Converts a whole number to an integer, as commands require: 10, not 10.0."""
    return int(value) if value is not None and value == int(value) else value
