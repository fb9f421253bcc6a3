"""Compares two binaries of the engine in one run: CPU time per operation and peak memory of trials from (a) to (c).

(d) measures the lab and involves no engine.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from measure import ENGINE, ROOT, narrow, ratio_of, spec, trial, verdict

GOAL = 0.97


@dataclass(frozen=True)
class Case:
    """A trial that both binaries run."""

    part: str
    store: str
    workload: str
    phase: str
    threads: int
    records: int
    operations: int


def cases(scale: int) -> list[Case]:
    """The trials of (a) to (c), with `scale` times the minimum number of operations."""
    few, many = 20_000 * scale, 100_000 * scale
    null = [
        Case("a", "null", "workloada", "run", 1, 1_000_000, 5 * many),
        Case("a", "null", "workloada", "load", 1, 5 * many, 5 * many),
    ]
    embedded = [
        Case("b", store, workload, phase, 1, few, many if phase == "run" else few)
        for store in ("rocksdb", "lmdb")
        for workload, phase in (("workloadc", "run"), ("workloada", "run"), ("workloada", "load"))
    ]
    return [*null, *embedded, Case("c", "null", "workloada", "run", 10_000, 1_000_000, 2 * many)]


def compare_with_before(engine: Path, only: str | None, work: Path, scale: int, repeats: int) -> None:
    """Prints ratios of CPU times, `engine` ÷ current engine: up to `repeats` pairs, until the interval is narrow."""
    for case in cases(scale):
        if only not in (None, case.part):
            continue
        loaded = work / f"loaded-{case.store}"
        if case.part == "b" and not loaded.exists():
            load = Case("b", case.store, "workloada", "load", 1, case.records, case.records)
            command = [ENGINE, "ycsb", *ycsb_arguments(load, loaded), "-p", "settle=true"]
            subprocess.run(command, check=True, capture_output=True)
        sides = [ENGINE, str(engine)]
        pairs: list[tuple[float, float]] = []
        memory: list[tuple[float, float]] = []
        for repeat in range(repeats + 1):
            # The order alternates, so that drift of the machine favours neither side.
            sides.reverse()
            costs = {side: measure(case, side, work / "db", loaded) for side in sides}
            # The first pair warms the page cache.
            if repeat:
                cpu, bytes_max = zip(costs[str(engine)], costs[ENGINE], strict=True)
                pairs.append(cpu)
                memory.append(bytes_max)
            if len(pairs) >= 6 and narrow(ratio_of(pairs)):
                break
        ratio = ratio_of(pairs)
        before, present = (sorted(side)[len(pairs) // 2] for side in zip(*pairs, strict=True))
        name = f"({case.part}) {case.store}, {case.phase} of {case.workload}, {case.threads:,} clients"
        met = verdict(ratio.low >= GOAL)
        print(f"{name}: CPU per operation of {engine.name} ÷ the present engine {ratio}")
        print(f"    {before:,.0f} against {present:,.0f} ns; goal lower end at least {GOAL}: {met}")
        print(f"    peak memory {ratio_of(memory)}", flush=True)


def ycsb_arguments(case: Case, directory: Path) -> list[str]:
    """YCSB's arguments for a case."""
    counts = ["-p", f"recordcount={case.records}", "-p", f"operationcount={case.operations}", "-p", "seed=1"]
    place = [] if case.store == "null" else ["-p", f"{case.store}.dir={directory}"]
    workload = str(ROOT / "workloads" / case.workload)
    return [case.phase, case.store, "-P", workload, "-threads", str(case.threads), *counts, *place]


def measure(case: Case, engine: str, directory: Path, load_store: Path) -> tuple[float, float]:
    """CPU time per operation, ns, and peak memory, B, of one trial."""
    shutil.rmtree(directory, ignore_errors=True)
    if case.part == "b" and case.phase == "run":
        shutil.copytree(load_store, directory)
    summary = trial(spec(ycsb_arguments(case, directory), engine), engine)
    return float(sum(summary["cpu_ns"])) / case.operations, float(summary["memory_bytes_max"])
