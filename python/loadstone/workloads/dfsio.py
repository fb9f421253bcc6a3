"""Files that are written and read as Hadoop's TestDFSIO does it, on local disks and on HDFS.

The engine's own front end translates a command line into a spec; what only the lab decides is put on top.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from loadstone.experiment.kind import Data, EngineLaunch, Kind, Launched
from loadstone.experiment.model.values import Part, Size, Varied, VariedCount, VariedTruth
from loadstone.results.value import Value
from loadstone.workloads.front_end import ROOT, place, settings, spec_of

if TYPE_CHECKING:
    from loadstone.engine.trial import Spec
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.model.points import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar

# Hadoop's default (TestDFSIO.DEFAULT_BUFFER_SIZE).
BUFFER = 1_000_000
MB = 1 << 20
READS = ("read", "random", "backward", "skip")
Operation = Literal["write", "append", "read", "random", "backward", "skip"]


class Dfsio(Part):
    """Files that are written or read in parallel, as Hadoop's TestDFSIO does. Files to be read are written first."""

    operation: Annotated[Operation, Varied()] = Field(examples=["write"])
    """What is measured: write, append, read from the start to the end, or read buffers at random places, backwards or
    with gaps (skip)."""

    files: VariedCount = Field(default=4, examples=[10])
    """Number of files; `clients` of them are written or read at once."""

    file_size: Size = Field(default=128 * MB, examples=["1GB"])
    """Bytes of each file."""

    buffer: Size = Field(default=BUFFER, examples=["1MB"])
    """Bytes that are written or read at once: one operation."""

    skip: Size | None = Field(default=None, examples=["4MB"])
    """Bytes of a gap of `operation: skip`. Default: the buffer."""

    replication: VariedCount | None = Field(default=None, examples=[3])
    """Copies of each block on HDFS. Default: the servers'."""

    block_size: Size | None = Field(default=None, examples=["128MB"])
    """Bytes of a block on HDFS. Default: the servers'."""

    direct: VariedTruth = Field(default=False, examples=[True])
    """Local files past the page cache (O_DIRECT)."""

    io: Annotated[Literal["threads", "uring"], Varied()] = Field(default="threads", examples=["uring"])
    """How local files are reached: calls that block, or io_uring."""

    depth: VariedCount | None = Field(default=None, examples=[16])
    """With `io: uring`, buffers of each file that are under way at once. Default: 8."""

    sync: Annotated[Literal["none", "flush", "close", "buffer"], Varied()] = Field(default="none", examples=["close"])
    """What a written file waits for: its close alone, that the file system has it (flush), that the device has it
    before it is closed (close), or after each buffer (buffer)."""

    cold: VariedTruth = Field(default=False, examples=[True])
    """Empty the page cache of the files before they are read, those of data nodes that the lab started as well."""


def stores() -> Collection[str]:
    """Those of files."""
    return ("file", "hdfs")


def check(context: Context, path: Keys, keys: Any) -> None:
    """What does not go together."""
    if keys.skip is not None and keys.operation != "skip" and "{" not in str(keys.operation):
        context.warn((*path, "skip"), "`skip` has no effect without `operation: skip`", "leave it out")
    for name, system in context.experiment.systems.items():
        if keys.cold and system.store == "hdfs" and system.start is None:
            message = f"`cold` has no effect on {name}, whose data nodes the lab does not start"
            context.warn((*path, "cold"), message, "empty their page caches in a hook: `hooks: {before: [ssh …]}`")


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Writes make files, which reads of other trials would find."""
    if str(keys.operation) not in READS:
        yield f"operation: {keys.operation}"


def title(work: Dfsio) -> str:
    """Operation, files and their size."""
    return f"dfsio {work.operation}"


def data(work: Dfsio) -> Data:
    """The files. What is read or appended to was written before, by what also decides how."""
    size = work.files * work.file_size
    loads = work.operation != "write"
    names = ("files", "file_size", "replication", "block_size")
    identity = {name: getattr(work, name) for name in names}
    return Data(work.files if loads else 0, work.file_size, identity, ROOT, moved_bytes=size)


def metrics(work: Any) -> Sequence[str]:
    """The cluster's throughput, and Hadoop's figures of the tasks."""
    return ("throughput", "dfsio.task_throughput", "dfsio.average_io_rate")


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's look at every phase."""
    for operation in operations(variant.work):
        yield partial(spec, variant, operation, False, Path("/data"), 0)


def operations(work: Dfsio) -> list[str]:
    """What a trial does, in order."""
    return [work.operation] if work.operation == "write" else ["write", work.operation]


def phases(variant: Variant, experiment: Experiment) -> Sequence[EngineLaunch]:
    """Write what is to be read, and do what is measured."""
    work, verify = variant.work, experiment.measure.verify
    measured = EngineLaunch(work.operation, "measure", partial(spec, variant, work.operation, verify), cold=work.cold)
    if work.operation == "write":
        return (measured,)
    return (EngineLaunch("load", "prepare", partial(spec, variant.loading, "write", False)), measured)


def spec(variant: Variant, operation: str, verify: bool, directory: Path, seed: int) -> Spec:
    """The spec of one phase. Raises LoadstoneError with the engine's message."""
    work: Dfsio = variant.work
    words = [*FLAGS[operation], "-nrFiles", str(work.files), "-fileSize", f"{work.file_size}B"]
    words += ["-bufferSize", str(work.buffer), "--clients", str(variant.clients)]
    if operation == "skip" and work.skip is not None:
        words += ["-skipSize", str(work.skip)]
    if variant.store == "hdfs":
        asked = {"dfs.replication": work.replication, "dfs.blocksize": work.block_size}
        given = {**settings(variant), **{name: value for name, value in asked.items() if value is not None}}
        words += [word for name, value in given.items() for word in ("-D", f"{name}={value}")]
    words += ["--direct"] if work.direct else []
    words += ["--io", work.io] if work.io != "threads" else []
    words += ["--depth", str(work.depth)] if work.depth is not None else []
    words += ["--sync", work.sync] if operation not in READS else []
    words += ["--cold"] if work.cold and operation in READS and variant.store == "file" else []
    words += ["--no-verify"] if operation in READS and not verify else []
    (found,) = spec_of("dfsio", [*words, place(variant, directory, "dfsio")])
    if variant.store == "file":
        properties = {**found["store"]["properties"], **variant.store_properties}
        found = {**found, "store": {**found["store"], "properties": properties}}
    return {**found, "seed": seed, "lease_ms": None}


FLAGS = {
    "write": ("-write",),
    "append": ("-append",),
    "read": ("-read",),
    "random": ("-read", "-random"),
    "backward": ("-read", "-backward"),
    "skip": ("-read", "-skip"),
}


def facts(launched: Sequence[Launched]) -> Mapping[str, Scalar]:
    """How many files of which size, and what is waited for."""
    asked = launched[-1].spec["work"]
    names = ("files", "file_bytes", "buffer_bytes", "action", "access", "sync")
    return {name: asked[name] for name in names if name in asked}


def figures(phase: EngineLaunch, launched: Sequence[Launched]) -> Iterator[Value]:
    """The aggregate from the first start to the last end, Hadoop's figures of its tasks, and the files' spread.

    Hadoop's `Throughput mb/sec` is bytes ÷ the sum of the tasks' times, and its `Average IO rate` the mean of the
    tasks' speeds (TestDFSIO.analyzeResult): speeds of one task among others, not the cluster's.
    """
    found = launched[-1].result.summary.files
    if found is None:
        return
    name = phase.prefix
    begun = found.done + found.failed + found.unfinished
    yield Value(f"{name}dfsio.files_failed", found.failed + found.unfinished, "files", begun)
    yield Value(f"{name}dfsio.files_unverified", found.unverified, "files", begun)
    if found.foreign and found.unverified < begun:
        # Beside files with Loadstone's mark, which were compared, one without was damaged or replaced. A file that is
        # missing, or was not reached, has no mark either.
        yield Value(f"{name}wrong", found.foreign, "files", begun)
    yield Value(f"{name}{'returned' if phase.name in READS else 'stored'}", found.bytes, "B", found.done)
    if not found.done or found.first_start_unix_ns is None:
        # No file was moved; buffers in a second, which the engine counts, are something else.
        yield Value(f"{name}throughput", 0.0, "B/s", begun)
        return
    for metric, end in (("first_done", found.first_done_unix_ns), ("last_done", found.last_done_unix_ns)):
        if end is not None:
            yield Value(f"{name}dfsio.{metric}", end - found.first_start_unix_ns, "ns", found.done)
    for metric, reached in found.guarantees.items():
        # The time from the first start until the last file had this guarantee is what its bytes are divided by.
        if reached.files and reached.last_unix_ns is not None:
            elapsed = max(reached.last_unix_ns - found.first_start_unix_ns, 1)
            yield Value(f"{name}dfsio.{metric}.throughput", reached.bytes * 1e9 / elapsed, "B/s", reached.files)
            yield Value(f"{name}dfsio.{metric}.mean", reached.ns / reached.files, "ns", reached.files)
    if found.last_done_unix_ns is not None:
        elapsed = max(found.last_done_unix_ns - found.first_start_unix_ns, 1)
        yield Value(f"{name}throughput", found.bytes * 1e9 / elapsed, "B/s", found.done)
    yield Value(f"{name}dfsio.task_throughput", found.bytes * 1e9 / max(found.task_ns, 1), "B/s", found.done)
    mean = found.rate_sum / found.done
    deviation = sqrt(max(found.rate_square_sum / found.done - mean * mean, 0.0))
    rates = {"average_io_rate": mean, "io_rate_stddev": deviation, "io_rate_min": found.rate_min}
    for metric, rate in (rates | {"io_rate_max": found.rate_max}).items():
        if rate is not None:
            yield Value(f"{name}dfsio.{metric}", rate * MB, "B/s", found.done)


KIND = Kind(
    Dfsio, False, stores, title, data, preflight, phases, check, changing, metrics=metrics, facts=facts, figures=figures
)
