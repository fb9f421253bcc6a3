"""Stores that did the same, in columns: what was measured, what they promise, and that one run proves nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import ROUNDED
from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.event import Result, merged
from loadstone.host import OTHERS_MAX
from loadstone.trial import Spec

OPERATIONS = ("READ", "UPDATE")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
NO_CLAIM = "n=1: no interval, no claim possible"
WITHHELD = "too few samples"
SPARK_WIDTH = 20
NO_DEVICE = frozenset({"tmpfs", "ramfs"})
SURVIVES = {"none": "nothing", "os": "the end of the process", "device": "the end of the machine"}


@dataclass(frozen=True)
class Measured:
    """One trial of a store."""

    spec: Spec
    result: Result
    # Operations per second, by second of the measured window.
    rates: tuple[float, ...]
    # The share of the processors that other processes took meanwhile, if known.
    others: float | None

    def quantiles_ns(self, operation: str) -> dict[str, int | None]:
        """Service times of what ended well; None where the samples are too few for that quantile."""
        histogram = merged(self.result.summary.outcomes, operation)
        return {
            name: histogram.quantile(share) if histogram.supports(share) else None for name, share in QUANTILES.items()
        }

    @property
    def errors(self) -> int:
        """Measured operations that did not end well."""
        return self.result.summary.operations - self.result.summary.succeeded


@dataclass(frozen=True)
class Column:
    """A store: its name in prose, and its two trials."""

    name: str
    load: Measured
    run: Measured


def table(columns: Sequence[Column], title: str, file_system: str, width: int) -> Table:
    """The results as a table."""
    made = Table(title=title, title_style="bold", box=ROUNDED, header_style="bold", width=width)
    made.add_column(no_wrap=True, style="cyan")
    made.add_column(no_wrap=True, style="dim")
    for column in columns:
        made.add_column(column.name, justify="right", ratio=1)
    for section in sections(columns, file_system):
        for row in section:
            made.add_row(*(Text(cell) for cell in row))
        made.add_section()
    return made


def sections(columns: Sequence[Column], file_system: str) -> list[list[list[str]]]:
    """The table's rows: a heading, a label, and a cell for each store."""
    loads = [column.load.result.summary for column in columns]
    runs = [column.run.result.summary for column in columns]
    facts = [column.run.result.ready.facts for column in columns]
    readies = [column.run.result.ready for column in columns]
    throughput = [
        ["load", "throughput", *(units.rate(load.operations_per_second) for load in loads)],
        ["run", "throughput", *(units.rate(run.operations_per_second) for run in runs)],
        ["", "by second", *(units.sparkline(column.run.rates, SPARK_WIDTH) for column in columns)],
        ["", "range", *(span(column.run.rates) for column in columns)],
    ]
    latencies = []
    for operation in OPERATIONS:
        found = [column.run.quantiles_ns(operation) for column in columns]
        latencies.append(
            [
                [operation.lower() if name == "p50" else "", name, *(latency(each[name]) for each in found)]
                for name in QUANTILES
            ]
        )
    costs = [
        ["device", "written", *(device(run.device_bytes[1], file_system) for run in runs)],
        ["", "while loading", *(device(load.device_bytes[1], file_system) for load in loads)],
        ["CPU", "engine + store", *(f"{sum(run.cpu_ns) / max(run.measured_ns, 1):.2f} processors" for run in runs)],
        ["", "driver alone", *(f"{units.duration(ready.driver_ns)} an operation" for ready in readies)],
        ["errors", "", *(units.count(column.load.errors + column.run.errors) for column in columns)],
    ]
    promises = [
        ["writes", "survive", *(SURVIVES.get(ready.durability, ready.durability) for ready in readies)],
        ["", "how", *(ready.how for ready in readies)],
        ["store", "version", *(fact.get("version", "unknown") for fact in facts)],
        ["", "cache", *(cache(fact.get("cache_bytes")) for fact in facts)],
        ["", "compression", *(fact.get("compression", "unknown") for fact in facts)],
    ]
    return [throughput, *latencies, costs, promises]


def latency(ns: int | None) -> str:
    """A latency, or why there is none."""
    return WITHHELD if ns is None else units.duration(ns)


def span(rates: Sequence[float]) -> str:
    """The slowest and the fastest second."""
    if len(rates) < 2:
        return "one second only"
    return f"{units.count(min(rates))} to {units.rate(max(rates))}"


def device(number_of_bytes: int, file_system: str) -> str:
    """Bytes on their way to a device, where there is one."""
    return f"no device ({file_system})" if file_system in NO_DEVICE else units.size(number_of_bytes)


def cache(number_of_bytes: str | None) -> str:
    """A store's own cache."""
    if number_of_bytes is None or not number_of_bytes.isdigit():
        return "unknown"
    return units.size(int(number_of_bytes)) if int(number_of_bytes) else "none but the kernel's"


def comparable(columns: Sequence[Column]) -> bool:
    """Whether all stores kept the same promise."""
    return len({column.run.result.ready.durability for column in columns}) == 1


def remarks(columns: Sequence[Column]) -> list[Text]:
    """What has to be known to read the table: the engines' notes with their hints, disturbances, unlike promises."""
    lines: list[Text] = []
    busy = []
    for column in columns:
        for phase, measured in (("load", column.load), ("run", column.run)):
            for note in measured.result.notes:
                lines += remark(note.name, f"{column.name} {phase}: {note.message}", note.hint)
            if measured.others is not None and measured.others > OTHERS_MAX:
                busy.append(f"{measured.others:.0%} in {column.name} {phase}")
    if busy:
        message = f"other processes' share of the processors: {', '.join(busy)}"
        lines += remark("interference", message, "run it again when the machine has nothing else to do")
    if not comparable(columns):
        kept = ", ".join(f"{column.name} keeps {column.run.result.ready.durability}" for column in columns)
        message = f"what writes survive differs ({kept}): these results do not compare"
        lines += remark("unlike-promises", message, "give all stores the same durability, one that each of them has")
    return lines


def remark(name: str, message: str, hint: str) -> tuple[Text, Text]:
    """A remark and what to do about it."""
    return Text.assemble((f"{name}: ", "yellow"), message), Text(f"  hint: {hint}", style="dim")


def document(columns: Sequence[Column], file_system: str) -> dict[str, Any]:
    """The same as data: base units, histograms as the engine sent them."""
    return {
        "claim": None,
        "why": NO_CLAIM,
        "comparable": comparable(columns),
        "file_system": file_system,
        "stores": [
            {"store": column.name, "load": trial_document(column.load), "run": trial_document(column.run)}
            for column in columns
        ],
    }


def trial_document(measured: Measured) -> dict[str, Any]:
    """One trial as data; quantiles are null where the samples are too few."""
    return {
        "spec": measured.spec,
        "operations_per_second": measured.result.summary.operations_per_second,
        "operations_per_second_by_second": measured.rates,
        "service_ns": {
            operation: measured.quantiles_ns(operation)
            for operation in sorted({outcome.operation for outcome in measured.result.summary.outcomes})
        },
        "errors": measured.errors,
        "processors_taken_by_others": measured.others,
        **asdict(measured.result),
    }
