"""TeraSort: rows are generated, sorted, and looked at; Hadoop's three programs, on local disks and on HDFS.

The engine's front ends say which stages there are; each is a launch, and the lab is the barrier between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.engine.events import Note
from loadstone.experiment.kind import Data, EngineLaunch, Kind, Launched, Stages
from loadstone.experiment.model.values import Part, Size, VariedCount, VariedTruth
from loadstone.results.value import Value
from loadstone.workloads.front_end import ROOT, place, settings, spec_of

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.plan.plan import Variant
    from loadstone.results.trial_result import Scalar

ROW_BYTES = 100
# A sort reads and writes its rows once, or twice where they do not fit into memory.
PASSES = 4
INPUT, OUTPUT, REPORT = "tera-in", "tera-out", "tera-report"
# The stages that one engine does.
ALONE = frozenset({"prepare", "sort_in_memory", "commit", "abandon"})


class Sort(Part):
    """TeraGen, TeraSort and TeraValidate: rows of 100 bytes are generated, sorted and checked."""

    rows: VariedCount = Field(examples=[10_000_000])
    """Number of rows: 10,000,000 are 1 GB."""

    parts: VariedCount | None = Field(default=None, examples=[4])
    """Files of the output. Default: one for each processor."""

    memory: Size | None = Field(default=None, examples=["1GB"])
    """Memory of each engine; what does not fit is sorted in runs on disk, and merged. Default: half of what is free, by
    all engines together."""

    replication: VariedCount | None = Field(default=None, examples=[3])
    """Copies of each block on HDFS. Default: the servers'."""

    direct: VariedTruth = Field(default=False, examples=[True])
    """Local files past the page cache (O_DIRECT)."""


def stores() -> Collection[str]:
    """Those of files."""
    return ("file", "hdfs")


def title(work: Sort) -> str:
    """That it is a sort."""
    return "sort"


def data(work: Sort) -> Data:
    """The rows."""
    identity = {name: getattr(work, name) for name in ("rows", "replication")}
    return Data(work.rows, ROW_BYTES, identity, ROOT, moved_bytes=PASSES * ROW_BYTES * work.rows)


def metrics(keys: Any) -> Sequence[str]:
    """How long it took, and bytes of rows in a second."""
    return ("throughput", "runtime", "generate.throughput", "validate.throughput")


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's look at what is to be generated; the others look at what that has left."""
    yield partial(stages, variant, "generate", Path("/data"), 0)


def phases(variant: Variant, experiment: Experiment) -> Sequence[EngineLaunch]:
    """Generate, sort, validate."""
    engines = experiment.fleet.engines
    return (
        EngineLaunch("generate", "prepare", partial(stages, variant, "generate", engines=engines)),
        EngineLaunch("sort", "measure", partial(stages, variant, "sort", engines=engines)),
        EngineLaunch("validate", "verify", partial(stages, variant, "validate", engines=engines)),
    )


def stages(variant: Variant, name: str, directory: Path, seed: int, engines: int = 1) -> Stages:
    """The launches of one phase. Raises LoadstoneError with the engine's message."""
    work: Sort = variant.work
    unsorted, made = place(variant, directory, INPUT), place(variant, directory, OUTPUT)
    # What several engines have found comes together in a report.
    report = [place(variant, directory, REPORT)] if engines > 1 else []
    command, places = {
        "generate": ("teragen", [str(work.rows), unsorted]),
        "sort": ("terasort", [unsorted, made]),
        "validate": ("teravalidate", [made, *report]),
    }[name]
    words = [] if work.memory is None else ["--memory", str(work.memory)]
    words += ["--direct"] if work.direct else []
    words += [] if work.parts is None or name == "validate" else ["--parts", str(work.parts)]
    if variant.store == "hdfs":
        names = () if work.replication is None else ("dfs.replication", "mapreduce.terasort.output.replication")
        given = {**settings(variant), **dict.fromkeys(names, str(work.replication))}
        words += [word for key, value in given.items() for word in ("-D", f"{key}={value}")]
    specs = [{**spec, "lease_ms": None, "seed": seed} for spec in spec_of(command, [*words, *places])]
    named = [(spec["work"]["stage"], spec) for spec in specs]
    for stage, spec in named:
        if work.memory is None and stage not in ALONE:
            spec["work"]["job"]["memory_bytes"] //= engines
    found = [(f"{name}.{stage}" if len(named) > 1 else name, spec) for stage, spec in named]
    return Stages(found, {key for (key, _), (stage, _) in zip(found, named, strict=True) if stage in ALONE})


def facts(launched: Sequence[Launched]) -> Mapping[str, Scalar]:
    """The rows and their checksum."""
    found = [each.result.summary.sort for each in launched]
    rows = max((each.rows for each in found if each), default=0)
    checksum = next((each.checksum for each in reversed(found) if each and each.checksum), None)
    # Nothing is on the other side of a network: the engine is what sorts, and may use all processors.
    own: dict[str, Scalar] = {"networked": "no", "rows": rows, "row_bytes": ROW_BYTES}
    return {**own, **({"checksum": checksum} if checksum else {})}


def figures(phase: EngineLaunch, launched: Sequence[Launched]) -> Iterator[Value]:
    """Rows, and over all stages the time, bytes of rows in a second, and the bytes that were moved."""
    found = [each.result.summary.sort for each in launched if each.result.summary.sort is not None]
    rows, seconds = max((each.rows for each in found), default=0), sum(each.seconds for each in found)
    if not rows or not seconds:
        return
    name = phase.prefix
    yield Value(f"{name}throughput", rows * ROW_BYTES / seconds, "B/s", rows)
    yield Value(f"{name}runtime", seconds * 1e9, "ns", 1)
    yield Value(f"{name}rows", rows, "rows", rows)
    # A stage that cannot do all of its rows ends as failed.
    yield Value(f"{name}errors", 0, "rows", rows)
    yield Value(f"{name}clock.jumps", sum(each.result.summary.clock.jumps for each in launched), "jumps", 1)
    yield Value(f"{name}returned", sum(each.bytes_read for each in found), "B", rows)
    yield Value(f"{name}stored", sum(each.bytes_written for each in found), "B", rows)
    for each in found:
        if each.validation is not None:
            yield Value(f"{name}faults", each.validation.faults, "rows", each.validation.rows)
            yield Value(f"{name}duplicates", each.validation.duplicates, "rows", each.validation.rows)


def failure(launched: Sequence[Launched]) -> Note | None:
    """That the output is not sorted, or not what was generated."""
    for each in launched:
        told = each.result.summary.sort
        if told is not None and told.validation is not None and told.validation.faults:
            faults = told.validation
            message = f"{faults.faults:,} of {faults.rows:,} rows are wrong: {'; '.join(faults.first_faults[:1])}"
            return Note("failed", message, "its figures are those of a sort that did not sort")
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
