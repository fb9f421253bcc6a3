"""Writes and reads files as Hadoop's TestDFSIO does, on local disks and on HDFS.

The engine's front end translates a command line to a spec, to which the lab adds its own settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind
from loadstone.experiment.model.values import FilePart, Size, Varied, VariedBoolean, VariedCount
from loadstone.results.value import Value
from loadstone.workloads.front_end import ROOT, client_options, location, spec_of, stores

if TYPE_CHECKING:
    from loadstone.engine.trial import Spec
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar

# Hadoop's default (TestDFSIO.DEFAULT_BUFFER_SIZE).
BUFFER = 1_000_000
MB = 1 << 20
READS = ("read", "random", "backward", "skip")
# Hadoop's names of compression codecs.
CODECS = {"gzip": "GzipCodec", "deflate": "DeflateCodec"}
Operation = Literal["write", "append", "read", "random", "backward", "skip"]


class Dfsio(FilePart):
    """Files that are written or read in parallel, as by Hadoop's TestDFSIO. Files to be read are written first."""

    operation: Annotated[Operation, Varied()] = Field(examples=["write"])
    """The measured operation: write, append, read from start to end, or read at random offsets, backwards, or with
    gaps (skip)."""

    files: VariedCount = Field(default=4, examples=[10])
    """Number of files; `clients` of them are written or read at the same time."""

    file_size: Size = Field(default=128 * MB, examples=["1GB"])
    """Size of each file."""

    buffer: Size = Field(default=BUFFER, examples=["1MB"])
    """Bytes that one operation writes or reads."""

    skip: Size | None = Field(default=None, examples=["4MB"])
    """Size of the gaps with `operation: skip`. Default: the size of the buffer."""

    replication: VariedCount | None = Field(default=None, examples=[3])
    """Replicas of each block on HDFS. Default: the servers' setting."""

    block_size: Size | None = Field(default=None, examples=["128MB"])
    """Size of a block on HDFS. Default: the servers' setting."""

    direct: VariedBoolean = Field(default=False, examples=[True])
    """Bypass the page cache for local files (O_DIRECT)."""

    io: Annotated[Literal["threads", "uring"], Varied()] = Field(default="threads", examples=["uring"])
    """Access to local files: blocking calls in threads, or io_uring."""

    depth: VariedCount | None = Field(default=None, examples=[16])
    """With `io: uring`, the number of buffers in flight per file. Default: 8."""

    sync: Annotated[Literal["none", "flush", "close", "buffer"], Varied()] = Field(default="none", examples=["close"])
    """The event that completes the write of a file: closing it (none), flushing it to the file system (flush), syncing
    it to the device before closing it (close), or syncing each buffer to the device (buffer)."""

    compression: Annotated[Literal["none", "gzip", "deflate"], Varied()] = Field(default="none", examples=["gzip"])
    """Compression of the files. Sizes are sizes before compression."""

    compressible: VariedBoolean = Field(default=False, examples=[True])
    """Write content that compresses to half its size."""

    cold: VariedBoolean = Field(default=False, examples=[True])
    """Evict the files from the page cache before they are read, including the page caches of data nodes that the lab
    started."""


def check(context: Context, path: Keys, keys: Any) -> None:
    """Checks combinations of keys."""
    if keys.skip is not None and keys.operation != "skip" and "{" not in str(keys.operation):
        context.add_warning((*path, "skip"), "`skip` has no effect without `operation: skip`", "leave it out")
    for name, system in context.experiment.systems.items():
        if keys.cold and system.store == "hdfs" and system.start is None:
            message = f"`cold` has no effect on {name}, because the lab does not start its data nodes"
            context.add_warning(
                (*path, "cold"), message, "drop their page caches in a hook: `hooks: {before: [ssh …]}`"
            )


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Yields the operation if it writes, because it then changes files that other trials may read."""
    if str(keys.operation) not in READS:
        yield f"operation: {keys.operation}"


def title(work: Dfsio) -> str:
    """The title in a plan, with the operation."""
    return f"dfsio {work.operation}"


def data(work: Dfsio) -> Data:
    """The files, which are written before they are read or appended to."""
    size = work.files * work.file_size
    loads = work.operation != "write"
    names = ("files", "file_size", "replication", "block_size", "compression", "compressible")
    identity = {name: getattr(work, name) for name in names}
    created = 0 if loads or work.compression != "none" else size
    return Data(work.files if loads else 0, work.file_size, identity, ROOT, moved_bytes=size, created_bytes=created)


def metrics(work: Any) -> Sequence[str]:
    """The throughput of the cluster, and the figures that Hadoop computes from its tasks."""
    return ("throughput", "dfsio.task_throughput", "dfsio.average_io_rate")


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's checks for every phase."""
    for operation in operations(variant.work):
        yield partial(spec, variant, operation, False, Path("/data"), 0)


def operations(work: Dfsio) -> list[str]:
    """The operations of a trial, in order."""
    return [work.operation] if work.operation == "write" else ["write", work.operation]


def phases(variant: Variant, experiment: Experiment) -> Sequence[EngineLaunch]:
    """Writes the files, unless writing is measured, and performs the measured operation."""
    work, verify = variant.work, experiment.measure.verify
    measured = EngineLaunch(work.operation, "measure", partial(spec, variant, work.operation, verify), cold=work.cold)
    if work.operation == "write":
        return (measured,)
    return (EngineLaunch("load", "prepare", partial(spec, variant.loading, "write", False)), measured)


def spec(variant: Variant, operation: str, verify: bool, directory: Path, seed: int) -> Spec:
    """The spec of one phase. Raises LoadstoneError with the engine's message."""
    work: Dfsio = variant.work
    arguments = [*FLAGS[operation], "-nrFiles", str(work.files), "-fileSize", f"{work.file_size}B"]
    arguments += ["-bufferSize", str(work.buffer), "--clients", str(variant.clients)]
    if operation == "skip" and work.skip is not None:
        arguments += ["-skipSize", str(work.skip)]
    arguments += client_options(variant, {"dfs.replication": work.replication, "dfs.blocksize": work.block_size})
    arguments += ["--direct"] if work.direct else []
    arguments += ["--io", work.io] if work.io != "threads" else []
    arguments += ["--depth", str(work.depth)] if work.depth is not None else []
    arguments += ["--sync", work.sync] if operation not in READS else []
    arguments += ["-compression", CODECS[work.compression]] if work.compression != "none" else []
    arguments += ["--compressible"] if work.compressible and operation not in READS else []
    arguments += ["--cold"] if work.cold and operation in READS and variant.store == "file" else []
    arguments += ["--no-verify"] if operation in READS and not verify else []
    (spec,) = spec_of("dfsio", [*arguments, location(variant, directory, "dfsio")])
    if variant.store == "file":
        properties = {**spec["store"]["properties"], **variant.store_properties}
        spec = {**spec, "store": {**spec["store"], "properties": properties}}
    return {**spec, "seed": seed}


FLAGS = {
    "write": ("-write",),
    "append": ("-append",),
    "read": ("-read",),
    "random": ("-read", "-random"),
    "backward": ("-read", "-backward"),
    "skip": ("-read", "-skip"),
}


def facts(launched: Sequence[EndedLaunch]) -> Mapping[str, Scalar]:
    """The number and size of the files, and how they are accessed and synced."""
    work = launched[-1].spec["work"]
    names = ("files", "file_bytes", "buffer_bytes", "action", "access", "sync", "compression")
    return {name: work[name] for name in names if name in work}


def figures(phase: EngineLaunch, launched: Sequence[EndedLaunch]) -> Iterator[Value]:
    """The aggregate throughput from the first start to the last completion, and Hadoop's figures about its tasks.

    Hadoop's `Throughput mb/sec` is bytes ÷ the sum of the tasks' times, and its `Average IO rate` is the mean of the
    tasks' rates (TestDFSIO.analyzeResult): both are rates of a single task, not of the cluster.
    """
    files = launched[-1].result.summary.files
    if files is None:
        return
    name = phase.prefix
    started = files.done + files.failed + files.unfinished
    yield Value(f"{name}dfsio.files_failed", files.failed + files.unfinished, "files", started)
    yield Value(f"{name}dfsio.files_unverified", files.unverified, "files", started)
    if 0 < files.foreign < files.done:
        # If some files have Loadstone's mark, files without it were damaged or replaced. A failed file reveals nothing
        # about the other files.
        yield Value(f"{name}wrong", files.foreign, "files", started)
    yield Value(f"{name}{'returned' if phase.name in READS else 'stored'}", files.bytes, "B", files.done)
    if not files.done or files.first_start_unix_ns is None:
        # No file was completed. The engine's own throughput is in buffers per second.
        yield Value(f"{name}throughput", 0.0, "B/s", started)
        return
    for metric, end in (("first_done", files.first_done_unix_ns), ("last_done", files.last_done_unix_ns)):
        if end is not None:
            yield Value(f"{name}dfsio.{metric}", end - files.first_start_unix_ns, "ns", files.done)
    for metric, reached in files.guarantees.items():
        # Bytes ÷ the time from the first start until the last file had this guarantee.
        if reached.files and reached.last_unix_ns is not None:
            elapsed = max(reached.last_unix_ns - files.first_start_unix_ns, 1)
            yield Value(f"{name}dfsio.{metric}.throughput", reached.bytes * 1e9 / elapsed, "B/s", reached.files)
            yield Value(f"{name}dfsio.{metric}.mean", reached.ns / reached.files, "ns", reached.files)
    if files.last_done_unix_ns is not None:
        elapsed = max(files.last_done_unix_ns - files.first_start_unix_ns, 1)
        yield Value(f"{name}throughput", files.bytes * 1e9 / elapsed, "B/s", files.done)
    yield Value(f"{name}dfsio.task_throughput", files.bytes * 1e9 / max(files.task_ns, 1), "B/s", files.done)
    mean = files.rate_sum / files.done
    deviation = sqrt(max(files.rate_square_sum / files.done - mean * mean, 0.0))
    rates = {"average_io_rate": mean, "io_rate_stddev": deviation, "io_rate_min": files.rate_min}
    for metric, rate in (rates | {"io_rate_max": files.rate_max}).items():
        if rate is not None:
            yield Value(f"{name}dfsio.{metric}", rate * MB, "B/s", files.done)


KIND = Kind(
    Dfsio,
    False,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    changing,
    metrics=metrics,
    facts=facts,
    figures=figures,
    remote=True,
)
