"""Sorting compared with Hadoop's TeraSort, the machine's bound, GNU sort, and the disk.

The comparison with Hadoop is also an experiment (``experiments/more/terasort-side-by-side.yaml``), which times the
validation of the rows as well. Here, the validation is not timed, and the ratio is checked against a goal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from measure import ENGINE, TARGET, ratio_of, verdict

from loadstone.systems.base.files.maven import class_path
from loadstone.systems.hdfs.system import OPENED

HADOOP = "3.4.2"
# The time that the cluster in Portworx's report took to sort 10 GB (experiments/hdfs-replication.yaml).
REPORT_S = 284
BOUND = str(TARGET / "release" / "examples" / "sort_bound")


class Cost:
    """Seconds and CPU seconds of a process and its children, and its output."""

    def __init__(self, line: list[str], directory: Path) -> None:
        # Makes the disk write all data that the previous run left in memory.
        os.sync()
        start = time.monotonic()
        with (directory / "out").open("w+b") as out, (directory / "err").open("w+b") as err:
            process = subprocess.Popen(line, cwd=directory, stdout=out, stderr=err)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - start
        self.cpu = used.ru_utime + used.ru_stime
        self.out = (directory / "out").read_text()
        if process.returncode:
            raise SystemExit(f"{line[:2]} failed: {(directory / 'err').read_text()[-2000:]}")


def compare_with_hadoop(work: Path, rows: int, repeats: int) -> None:
    """(s) Compared with Hadoop's local runner with a map task per processor, on the same rows and local files."""
    names = ("hadoop-mapreduce-examples", "hadoop-mapreduce-client-jobclient", "hadoop-common")
    jars = os.pathsep.join(map(str, class_path("terasort-local", [f"org.apache.hadoop:{n}:{HADOOP}" for n in names])))
    processors = os.cpu_count() or 1
    tera = "org.apache.hadoop.examples.terasort.TeraSort"
    java = [
        "java",
        "-Xmx2g",
        *OPENED,
        "-cp",
        jars,
        tera,
        f"-Dhadoop.tmp.dir={work}/tmp",
        "-Dmapreduce.framework.name=local",
    ]
    java += [f"-Dmapreduce.local.{kind}.tasks.maximum={processors}" for kind in ("map", "reduce")]
    java += [f"-Dmapreduce.job.reduces={processors}"]
    source = work / "in"
    subprocess.run([ENGINE, "teragen", str(rows), source], check=True, capture_output=True)
    wall, cpu = [], []
    for _ in range(repeats):
        engine_cost = Cost([ENGINE, "terasort", str(source), str(work / "loadstone")], work)
        hadoop_cost = Cost([*java, str(source), str(work / "other")], work)
        wall.append((hadoop_cost.seconds, engine_cost.seconds))
        cpu.append((hadoop_cost.cpu, engine_cost.cpu))
        for name in ("loadstone", "other"):
            subprocess.run([ENGINE, "teravalidate", work / name], check=True, capture_output=True)
            shutil.rmtree(work / name)
    for what, pairs, goal in (("wall time", wall, 10), ("CPU", cpu, 8)):
        ratio = ratio_of(pairs)
        theirs_s, ours_s = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
        print(f"(s) TeraSort of {rows / 1e7:g} GB, {what}, Hadoop {HADOOP}'s local runner ÷ Loadstone {ratio}")
        print(f"    {theirs_s:.2f} s against {ours_s:.2f} s; goal at least {goal}: {verdict(ratio.median >= goal)}")


def compare_with_bound(rows: int, repeats: int) -> None:
    """(s) In memory, compared with one sort of the entries and one copy of the rows."""
    output = subprocess.run([BOUND, str(rows), str(repeats)], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    # The engine uses the sort of the standard library.
    ratio = ratio_of([(line["rdst"], line["sort_unstable"]) for line in lines])
    radix, standard = (sorted(line[side] for line in lines)[repeats // 2] for side in ("rdst", "sort_unstable"))
    print(
        f"(s) {rows:,} keys, wall time, the radix sort of the crate rdst ÷ sort_unstable, which Loadstone uses {ratio}"
    )
    print(f"    {radix:.3f} s against {standard:.3f} s; goal: not clearly below 1: {verdict(ratio.high >= 1)}")
    ratio = ratio_of([(sum(line["bound"]), sum(line["loadstone"])) for line in lines])
    bound, engine_s = (sorted(sum(line[side]) for line in lines)[repeats // 2] for side in ("bound", "loadstone"))
    print(f"(s) {rows:,} rows in memory, the machine's bound ÷ Loadstone {ratio}")
    print(f"    {bound:.3f} s against {engine_s:.3f} s; goal at least 0.6: {verdict(ratio.median >= 0.6)}")


def compare_with_gnu_sort(work: Path, rows: int, repeats: int) -> None:
    """(s) GNU sort on the same keys as text: 20 digits for 10 bytes, without other bytes of the row."""
    source, text = work / "in", work / "keys"
    subprocess.run([ENGINE, "teragen", "--parts", "1", str(rows), source], check=True, capture_output=True)
    everything = (source / "part-m-00000").read_bytes()
    text.write_text("".join(f"{everything[at : at + 10].hex()}\n" for at in range(0, len(everything), 100)))
    pairs = []
    for _ in range(repeats):
        engine_cost = Cost([ENGINE, "terasort", str(source), str(work / "loadstone")], work)
        line = ["sort", f"--parallel={os.cpu_count() or 1}", "-S", "4G", "-o", str(work / "other"), str(text)]
        # Compares bytes instead of a language's letters.
        gnu_cost = Cost(["env", "LC_ALL=C", *line], work)
        pairs.append((gnu_cost.seconds, engine_cost.seconds))
        shutil.rmtree(work / "loadstone")
    ratio = ratio_of(pairs)
    theirs_s, ours_s = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
    print(f"(s) {rows:,} rows of 100 bytes, for GNU sort their keys as text: wall time, GNU sort ÷ Loadstone {ratio}")
    print(f"    {theirs_s:.2f} s against {ours_s:.2f} s; goal above 1: {verdict(ratio.low > 1)}")


def compare_with_disk(work: Path, rows: int, memory: int, repeats: int) -> None:
    """(s) An external sort compared with reading and writing the data twice at the disk's speed."""
    source, pairs, peaks = work / "in", [], []
    for _ in range(repeats):
        command = ["--memory", str(memory), "--direct", "--disk", str(source), str(work / "loadstone")]
        output = Cost([ENGINE, "terasort", *command], work).out
        speeds = re.findall(r"^disk \w+ +([\d.]+) MB/s written, ([\d.]+) MB/s read", output, re.MULTILINE)
        write, read = (sum(float(speed[side]) for speed in speeds) / len(speeds) for side in range(2))
        stages = dict(re.findall(r"^(\w[\w ]*?) +([\d.]+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+$", output, re.MULTILINE))
        seconds = sum(float(stages[stage]) for stage in ("prepare", "sample", "sort", "merge", "commit"))
        megabytes = rows / 1e4
        pairs.append((seconds, 2 * megabytes / write + 2 * megabytes / read))
        peaks += [float(peak) * 1e6 for peak in re.findall(r"^memory +([\d.]+) MB", output, re.MULTILINE)]
        subprocess.run([ENGINE, "teravalidate", work / "loadstone"], check=True, capture_output=True)
        shutil.rmtree(work / "loadstone")
    ratio = ratio_of(pairs)
    ours_s, disk_s = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
    print(
        f"(s) {rows / 1e7:g} GB, --memory {memory / 1e9:g}GB: wall time, Loadstone ÷ reading and writing twice {ratio}"
    )
    print(f"    {ours_s:.1f} s against {disk_s:.1f} s; goal at most 1.6, and {REPORT_S} s: ", end="")
    print(verdict(ratio.median <= 1.6 and ours_s < REPORT_S))
    print(f"    peak of the memory {max(peaks) / 1e6:.0f} MB; goal less than that: {verdict(max(peaks) < memory)}")


def sorting(work: Path, quick: bool) -> None:
    """Runs all comparisons."""
    rows, repeats = (100_000, 2) if quick else (10_000_000, 6)
    compare_with_bound(rows, repeats)
    for name in ("hadoop", "gnu", "disk"):
        place = work / f"sort-{name}"
        place.mkdir()
        if name == "hadoop":
            compare_with_hadoop(place, rows, repeats)
        elif name == "gnu":
            compare_with_gnu_sort(place, rows, repeats)
        else:
            command = ["teragen", "--direct", str(10 * rows), str(place / "in")]
            subprocess.run([ENGINE, *command], check=True, capture_output=True)
            for memory in (64 << 20,) if quick else (2_000_000_000, 1_000_000_000):
                compare_with_disk(place, 10 * rows, memory, 2 if quick else 3)
        shutil.rmtree(place)
