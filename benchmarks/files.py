"""Files: DFSIO compared with fio on local disks, and with Hadoop's TestDFSIO on HDFS, in one run, as ratios.

``experiments/more/testdfsio-side-by-side.yaml`` compares the speeds that both tools print. Here, the bandwidth is
from the engine's events, and the client's CPU time is the difference between two runs, which excludes the start of the
JVM.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import ENGINE, ratio_of, run, trial, verdict
from servers import up

from loadstone.systems.base.files.maven import class_path

MB = 1 << 20
HADOOP = "3.4.2"
OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "sun.nio.ch", "java.nio")]
# Name, fio's rw, dfsio's test, buffer size in bytes, share of the total size.
SHAPES = (
    ("sequential write, 1 MiB", "write", "-write", MB, 1.0),
    ("sequential read, 1 MiB", "read", "-read", MB, 1.0),
    ("random write, 64 KiB", "randwrite", "-write -random", 64 << 10, 0.5),
    ("random read, 64 KiB", "randread", "-read -random", 64 << 10, 0.5),
    ("random read, 4 KiB", "randread", "-read -random", 4 << 10, 0.1),
)
DEPTH = 8


@dataclass(frozen=True)
class Moved:
    """The result of a tool's run on files."""

    bytes_per_s: float
    cpu_s_per_gb: float


def spec_of(line: str, *more: str) -> dict[str, Any]:
    """The TrialSpec of a DFSIO command line."""
    printed = subprocess.run([ENGINE, "dfsio", *line.split(), *more, "--print-spec"], capture_output=True, text=True)
    if printed.returncode:
        raise SystemExit(printed.stderr)
    return dict(json.loads(printed.stdout))


def read_transfer(summary: dict[str, Any]) -> Moved:
    """The result of a Loadstone trial: from the first start to the last end, and the CPU of all its threads."""
    files = summary["files"]
    if files["failed"] or files["unfinished"]:
        raise SystemExit(f"error: files failed: {summary['words']}")
    seconds = (files["last_done_unix_ns"] - files["first_start_unix_ns"]) / 1e9
    return Moved(files["bytes"] / seconds, sum(summary["cpu_ns"]) / files["bytes"])


def fio(directory: Path, rw: str, block: int, size: int) -> Moved:
    """The result of fio on a separate file: io_uring with registered buffers, O_DIRECT, new content for each write."""
    arguments = f"--name=job --rw={rw} --bs={block} --size={size} --ioengine=io_uring --iodepth={DEPTH} --fixedbufs=1"
    how = "--direct=1 --refill_buffers=1 --randrepeat=1 --output-format=json"
    if rw == "write":
        # A new file without blocks, as for Loadstone. Both tools preallocate the blocks.
        (directory / "fio").unlink(missing_ok=True)
    output = run(["fio", *arguments.split(), *how.split(), f"--filename={directory / 'fio'}"])
    job = json.loads(output.stdout[output.stdout.index("{") :])["jobs"][0]
    side = job["write" if "write" in rw else "read"]
    seconds = side["runtime"] / 1e3
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1e3
    return Moved(side["io_bytes"] / seconds, cpu * 1e9 / side["io_bytes"])


def compare_with_fio(work: Path, size: int, repeats: int) -> None:
    """(i) O_DIRECT with io_uring, one file: bandwidth and CPU time, Loadstone ÷ fio, and the cost of verification."""
    if shutil.which("fio") is None:
        raise SystemExit("error: fio is not installed\nhint: apt-get install fio")
    directory = work / "files"
    how = f"-nrFiles 1 --seed 1 --direct --io uring --depth {DEPTH}"

    def run_engine(line: str, block: int, size: int, *more: str) -> Moved:
        trial_spec = spec_of(f"{line} {how} -bufferSize {block} -fileSize {size}B", *more, str(directory))
        return read_transfer(trial(trial_spec))

    # Both tools have a file of the total size, so that neither reads a file that only the other has just written.
    run_engine("-write", MB, size)
    fio(directory, "write", MB, size)
    for name, rw, line, block, share in SHAPES:
        part = int(size * share) // block * block
        pairs: list[tuple[Moved, Moved]] = []
        for repeat in range(repeats + 1):
            entries = {}
            # The order alternates, so that drift of the machine favours neither side.
            for side in ("loadstone", "fio") if repeat % 2 else ("fio", "loadstone"):
                os.sync()
                mine = side == "loadstone"
                entries[side] = (
                    run_engine(line, block, part, "--no-verify") if mine else fio(directory, rw, block, part)
                )
            # The first pair warms the device's caches.
            if repeat:
                pairs.append((entries["loadstone"], entries["fio"]))
        bandwidth = ratio_of([(mine.bytes_per_s, other.bytes_per_s) for mine, other in pairs])
        cpu = ratio_of([(mine.cpu_s_per_gb, other.cpu_s_per_gb) for mine, other in pairs])
        typical = [sorted(side.bytes_per_s for side in sides)[repeats // 2] / 1e6 for sides in zip(*pairs, strict=True)]
        print(f"(i) {name}: bandwidth, Loadstone ÷ fio {bandwidth}")
        print(f"    CPU per byte, Loadstone ÷ fio {cpu}")
        met = verdict(bandwidth.median >= 0.97 and cpu.median <= 1.1)
        print(f"    {typical[0]:,.0f} against {typical[1]:,.0f} MB/s; goal at least 0.97 at 1.1 × the CPU: {met}")
    plain, checked = [], []
    for _ in range(repeats):
        plain.append(run_engine("-read", MB, size, "--no-verify"))
        checked.append(run_engine("-read", MB, size))
    rates = ratio_of([(a.bytes_per_s, b.bytes_per_s) for a, b in zip(checked, plain, strict=True)])
    costs = ratio_of([(a.cpu_s_per_gb, b.cpu_s_per_gb) for a, b in zip(checked, plain, strict=True)])
    print(f"(i) verifying, sequential read, 1 MiB: bandwidth ÷ without {rates}")
    print(f"    CPU per byte ÷ without {costs}")


def hadoop_jars() -> str:
    """Hadoop's TestDFSIO and its dependencies."""
    group = "org.apache.hadoop"
    job = f"{group}:hadoop-mapreduce-client-jobclient:{HADOOP}"
    names = [f"{group}:{name}:{HADOOP}" for name in ("hadoop-common", "hadoop-hdfs-client", "hadoop-hdfs")]
    more = [f"{group}:hadoop-hdfs:{HADOOP}:jar:tests", job, f"{group}:hadoop-mapreduce-client-common:{HADOOP}"]
    jars = class_path("testdfsio", [*names, *more, f"{job}:jar:tests", "junit:junit:4.13.2"])
    return os.pathsep.join(map(str, jars))


def test_dfsio(java: Sequence[str], test: str, files: int, size: int, copies: int, home: Path) -> tuple[float, float]:
    """Runs Hadoop's TestDFSIO; returns the printed throughput, MB/s, and the CPU seconds of the whole process."""
    results = home / "hadoop.log"
    results.unlink(missing_ok=True)
    own = f"-Dtest.build.data=/hadoop -Dmapreduce.framework.name=local -Ddfs.replication={copies}".split()
    many = [f"-Dmapreduce.local.map.tasks.maximum={files}", test, "-nrFiles", str(files), "-size", f"{size}MB"]
    used = run([*java, *own, *many, "-resFile", str(results)])
    match = re.search(r"Throughput mb/sec: ([0-9.]+)", results.read_text())
    if match is None:
        raise SystemExit("error: TestDFSIO printed no throughput")
    return float(match[1]), used.cpu_seconds


def compare_with_testdfsio(work: Path, size: int, repeats: int, files: int = 4) -> None:
    """(j) HDFS on three data nodes of this machine: Hadoop's `Throughput`, Loadstone ÷ Hadoop, and the clients' CPU.

    The CPU time is the difference between a large and a small run, because both include the start-up. Data is in
    memory if possible: a disk would limit both clients equally.
    """
    small = max(size // 8, 1)
    # Files of both tools, with three copies each.
    needed = 2 * 3 * files * (size + small) * MB
    memory = Path("/dev/shm")
    in_memory = memory.is_dir() and shutil.disk_usage(memory).free > needed
    print(f"(j) HDFS, {files} files of {size} MiB, data nodes {'in memory' if in_memory else 'on the disk'}")
    with up("hdfs", 3, memory if in_memory else None, blocksize="64m") as hdfs:
        properties = hdfs.store_properties()
        java = ["java", "-Xmx1g", *OPENED, "-cp", f"{properties['hadoop.conf']}:{hadoop_jars()}"]
        java.append("org.apache.hadoop.fs.TestDFSIO")
        uri = f"{properties['fs.defaultFS']}/loadstone"

        def run_engine(test: str, size: int, copies: int) -> tuple[float, float]:
            line = (
                f"{test} -nrFiles {files} -fileSize {size}MB --clients {files} --no-verify -D dfs.replication={copies}"
            )
            summary = trial(spec_of(line, uri))
            read_transfer(summary)
            return summary["files"]["bytes"] / MB / (summary["files"]["task_ns"] / 1e9), sum(summary["cpu_ns"]) / 1e9

        for copies, goal in ((1, 1.2), (3, 0.95)):
            for test in ("-write", "-read"):
                speeds, cpus = [], []
                for repeat in range(repeats):
                    entries = {}
                    # The order alternates, and the disks have written all data that the previous run left in memory.
                    for side in ("loadstone", "hadoop") if repeat % 2 else ("hadoop", "loadstone"):
                        for bytes_each in (small, size):
                            os.sync()
                            entries[side, bytes_each] = (
                                run_engine(test, bytes_each, copies)
                                if side == "loadstone"
                                else test_dfsio(java, test, files, bytes_each, copies, work)
                            )
                    speeds.append((entries["loadstone", size][0], entries["hadoop", size][0]))
                    mine, other = (entries[side, size][1] - entries[side, small][1] for side in ("loadstone", "hadoop"))
                    cpus.append((mine, max(other, 1e-9)))
                speed, cpu = ratio_of(speeds), ratio_of(cpus)
                print(f"(j) HDFS, replication {copies}, {test}: throughput, Loadstone ÷ TestDFSIO {speed}")
                print(f"    CPU of the client, Loadstone ÷ TestDFSIO {cpu}")
                mine, other = (sorted(side)[repeats // 2] for side in zip(*speeds, strict=True))
                met = verdict(speed.median >= goal and cpu.median <= 0.3)
                print(f"    {mine:.0f} against {other:.0f} MB/s; goal at least {goal} at 0.3 × the CPU: {met}")
