"""TeraSort: generates, sorts and validates rows as Hadoop's three programs do, on local disks and on HDFS.

The engine's front ends define the stages. Each stage is a launch, and the next stage begins when all engines have
finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.engine.events import Note
from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind, LaunchStages
from loadstone.experiment.model.values import FilePart, Size, VariedBoolean, VariedCount
from loadstone.results.value import Value
from loadstone.workloads.front_end import ROOT, client_options, location, spec_of, stores

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.plan.plan import Variant
    from loadstone.results.trial_result import Scalar

ROW_BYTES = 100
# The maximum number of passes: a sort reads and writes the rows once, or twice if they do not fit into memory.
PASSES = 4
INPUT, OUTPUT, REPORT = "tera-in", "tera-out", "tera-report"
# The replication properties of HDFS and of Hadoop's TeraSort.
REPLICATION = ("dfs.replication", "mapreduce.terasort.output.replication")
# The stages that only one engine runs.
ALONE = frozenset({"prepare", "commit", "abandon"})


class Sort(FilePart):
    """TeraGen, TeraSort and TeraValidate: rows of 100 bytes are generated, sorted and checked."""

    rows: VariedCount = Field(examples=[10_000_000])
    """Number of rows; 10,000,000 rows are 1 GB."""

    parts: VariedCount | None = Field(default=None, examples=[4])
    """Number of output files. Default: one per processor."""

    memory: Size | None = Field(default=None, examples=["1GB"])
    """Memory of each load generator; rows that do not fit are sorted in runs on disk and then merged. Default: half of
    the free memory, shared by all load generators."""

    replication: VariedCount | None = Field(default=None, examples=[3])
    """Replicas of each block on HDFS. Default: the servers' setting."""

    direct: VariedBoolean = Field(default=False, examples=[True])
    """Bypass the page cache for local files (O_DIRECT)."""


def title(work: Sort) -> str:
    """The title in a plan: the kind's name."""
    return "sort"


def data(work: Sort) -> Data:
    """The rows, and the bytes that a sort reads and writes."""
    identity = {name: getattr(work, name) for name in ("rows", "replication")}
    return Data(work.rows, ROW_BYTES, identity, ROOT, moved_bytes=PASSES * ROW_BYTES * work.rows)


def metrics(keys: Any) -> Sequence[str]:
    """The throughput of each phase, and the time of the sort."""
    return ("throughput", "runtime", "generate.throughput", "validate.throughput")


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's check of the first phase; the checks of later phases would need the output of earlier phases."""
    yield partial(stages, variant, "generate", Path("/data"), 0)


def phases(variant: Variant, experiment: Experiment) -> Sequence[EngineLaunch]:
    """Generates the rows, sorts them, and validates the result."""
    engines = experiment.fleet.engines
    return (
        EngineLaunch("generate", "prepare", partial(stages, variant, "generate", engines=engines)),
        EngineLaunch("sort", "measure", partial(stages, variant, "sort", engines=engines)),
        EngineLaunch("validate", "verify", partial(stages, variant, "validate", engines=engines)),
    )


def stages(variant: Variant, name: str, directory: Path, seed: int, engines: int = 1) -> LaunchStages:
    """The launches of one phase. Raises LoadstoneError with the engine's message."""
    work: Sort = variant.work
    unsorted, sorted_rows = location(variant, directory, INPUT), location(variant, directory, OUTPUT)
    # Several engines combine their results in a report.
    report = [location(variant, directory, REPORT)] if engines > 1 else []
    command, operands = {
        "generate": ("teragen", [str(work.rows), unsorted]),
        "sort": ("terasort", [unsorted, sorted_rows]),
        "validate": ("teravalidate", [sorted_rows, *report]),
    }[name]
    arguments = [] if work.memory is None else ["--memory", str(work.memory)]
    arguments += ["--direct"] if work.direct else []
    arguments += [] if work.parts is None or name == "validate" else ["--parts", str(work.parts)]
    arguments += client_options(variant, dict.fromkeys(REPLICATION, work.replication))
    printed = spec_of(command, [*arguments, *operands])
    if work.memory is None and engines > 1:
        # Each engine's share of the memory decides which data stays in memory.
        share = str(printed[0]["work"]["job"]["memory_bytes"] // engines)
        printed = spec_of(command, [*arguments, "--memory", share, *operands])
    specs = {spec["work"]["stage"]: {**spec, "seed": seed} for spec in printed}
    names = {stage: f"{name}.{stage}" if len(specs) > 1 else name for stage in specs}
    # On servers, files that a failed stage leaves behind would remain until the next trial.
    *_, last = specs.values()
    abandon = {**last, "work": {**last["work"], "stage": "abandon"}}
    cleanup = [(f"{name}.abandon", abandon)] if "prepare" in specs else []
    launches = [(names[stage], spec) for stage, spec in specs.items()]
    return LaunchStages(launches, {names[stage] for stage in ALONE & specs.keys()}, cleanup)


def facts(launched: Sequence[EndedLaunch]) -> Mapping[str, Scalar]:
    """The rows, their checksum, and the stages, which show whether the rows fitted into memory."""
    summaries = [item.result.summary.sort for item in launched]
    rows = max((summary.rows for summary in summaries if summary), default=0)
    checksum = next((summary.checksum for summary in reversed(summaries) if summary and summary.checksum), None)
    # Sorting is the measured work, even on HDFS, so fully used processors do not mean that the generator is the limit.
    stage = ", ".join(str(item.result.ready.facts["stage"]) for item in launched if "stage" in item.result.ready.facts)
    own: dict[str, Scalar] = {"networked": "no", "rows": rows, "row_bytes": ROW_BYTES}
    return {**own, **({"stage": stage} if stage else {}), **({"checksum": checksum} if checksum else {})}


def figures(phase: EngineLaunch, launched: Sequence[EndedLaunch]) -> Iterator[Value]:
    """The rows and, over all stages, the time, the throughput, and the bytes read and written."""
    summaries = [item.result.summary.sort for item in launched if item.result.summary.sort is not None]
    rows, seconds = (
        max((summary.rows for summary in summaries), default=0),
        sum(summary.seconds for summary in summaries),
    )
    if not rows or not seconds:
        return
    name = phase.prefix
    yield Value(f"{name}throughput", rows * ROW_BYTES / seconds, "B/s", rows)
    yield Value(f"{name}runtime", seconds * 1e9, "ns", 1)
    yield Value(f"{name}rows", rows, "rows", rows)
    # A stage that cannot process all its rows fails as a whole.
    yield Value(f"{name}errors", 0, "rows", rows)
    yield Value(f"{name}clock.jumps", sum(item.result.summary.clock.jumps for item in launched), "jumps", 1)
    yield Value(f"{name}returned", sum(summary.bytes_read for summary in summaries), "B", rows)
    yield Value(f"{name}stored", sum(summary.bytes_written for summary in summaries), "B", rows)
    for summary in summaries:
        if summary.validation is not None:
            yield Value(f"{name}faults", summary.validation.faults, "rows", summary.validation.rows)
            yield Value(f"{name}duplicates", summary.validation.duplicates, "rows", summary.validation.rows)


def failure(launched: Sequence[EndedLaunch]) -> Note | None:
    """A note if the output is not sorted, or differs from the generated rows."""
    for item in launched:
        summary = item.result.summary.sort
        if summary is not None and summary.validation is not None and summary.validation.faults:
            checked = summary.validation
            message = f"{checked.faults:,} of {checked.rows:,} rows are wrong: {'; '.join(checked.first_faults[:1])}"
            return Note("failed", message, "do not use these figures: the output is not sorted correctly")
    return None


KIND = Kind(
    Sort,
    False,
    stores,
    title,
    data,
    preflight,
    phases,
    metrics=metrics,
    facts=facts,
    figures=figures,
    failure=failure,
    clients=False,
)
