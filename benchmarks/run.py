"""make bench: Loadstone next to other tools, in one run, as ratios.

Each figure is a ratio of two quantities measured alternately on this machine; the absolute figures next to it are for
orientation only. Pairs whose figures cover whole processes and have no goal are experiments instead
(``experiments/more/*-side-by-side.yaml``); (a) has goals, and builds the store of its second pair. ``--quick`` checks
that everything works, with too few operations for valid figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from before import compare_with_before
from files import compare_with_fio, compare_with_testdfsio
from hosted import measure_binding_cost
from lab import REPEATS, measure_scale, small_commands
from measure import ENGINE, ROOT, TARGET, narrow, ratio_of, run, spec, trial, verdict
from servers import compare_with_cassandra_stress, compare_with_performance_evaluation, compare_with_redis_benchmark
from terasort import sorting

BARE = str(TARGET / "release" / "examples" / "bare")


def build() -> None:
    """Builds the engine as users get it, and an optimised bare loop."""
    # In a single command, the features of the examples' dependencies would also be enabled in the engine's binary.
    for parts in (["loadstone-engine"], ["loadstone-stores", "-p", "loadstone-storage", "--examples"]):
        subprocess.run(["cargo", "build", "--release", "-p", *parts], cwd=ROOT, check=True)


def ycsb_class_path(directory: Path) -> str:
    """site.ycsb:core and its dependencies from Maven Central, and the consuming store."""
    pom = ROOT / "benchmarks" / "java" / "pom.xml"
    mvn = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={directory}/lib"]
    subprocess.run(mvn, check=True)
    source = ROOT / "benchmarks" / "java" / "ConsumingDB.java"
    subprocess.run(["javac", "-cp", f"{directory}/lib/*", "-d", str(directory), str(source)], check=True)
    return f"{directory}:{directory}/lib/*"


def compare_with_ycsb(work: Path, scale: int, repeats: int) -> None:
    """(a) The null store compared with YCSB's client on stores that do nothing: CPU of the whole processes."""
    class_path = ycsb_class_path(work)
    operations = 20_000_000 * scale // 10
    shapes = [
        ("run, workload A, against BasicDB", "run", "site.ycsb.BasicDB", 0.4),
        ("load, values consumed", "load", "ConsumingDB", 0.12),
    ]
    for name, phase, db, goal in shapes:

        def count(n: int, phase: str = phase) -> list[str]:
            records = n if phase == "load" else 1_000_000
            return [
                "-P",
                str(ROOT / "workloads" / "workloada"),
                "-p",
                f"recordcount={records}",
                "-p",
                f"operationcount={n}",
            ]

        def run_engine(n: int, phase: str = phase) -> float:
            return run([ENGINE, "ycsb", phase, "null", *count(n)]).cpu_seconds

        def run_ycsb(n: int, phase: str = phase, db: str = db) -> float:
            flag = "-load" if phase == "load" else "-t"
            java = ["java", "-cp", class_path, "site.ycsb.Client", "-db", db, "-p", "basicdb.verbose=false"]
            return run([*java, *count(n), flag]).cpu_seconds

        pairs = [(run_engine(operations), run_ycsb(operations)) for _ in range(repeats)]
        ratio = ratio_of(pairs)
        mine, other = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
        print(f"(a) {name}: CPU of {operations:,} operations, Loadstone ÷ YCSB 0.17.0 {ratio}")
        print(f"    {mine:.2f} s against {other:.2f} s; goal at most {goal}: {verdict(ratio.median <= goal)}")


def compare_with_bare_loop(work: Path, scale: int, repeats: int) -> None:
    """(b) The engine on embedded stores compared with a loop without measurement, on the same library, keys and values.

    CPU per operation of the bare loop ÷ the engine's, in rounds until the interval is within 2 % of the median, at most
    `repeats`. The second ratio is for the bare loop with two clock readings and a histogram: no program that measures
    can exceed it.
    """
    for store in ("rocksdb", "lmdb"):
        records, operations = 200_000 * scale, 1_000_000 * scale
        loaded = work / f"loaded-{store}"
        base = ["-P", str(ROOT / "workloads" / "workloada"), "-p", f"recordcount={records}", "-p", "seed=1"]
        subprocess.run(
            [ENGINE, "ycsb", "load", store, *base, "-p", f"{store}.dir={loaded}", "-p", "settle=true"],
            check=True,
            capture_output=True,
        )
        for name, phase, workload in (
            ("C", "run", "workloadc"),
            ("A", "run", "workloada"),
            ("load", "load", "workloada"),
        ):
            pairs: list[tuple[float, float]] = []
            timed: list[tuple[float, float]] = []
            sides = ["loadstone", "bare", "timed"]
            for repeat in range(repeats + 1):
                costs = {}
                # The order alternates, so that drift of the machine favours neither side.
                sides.reverse()
                for side in sides:
                    directory = work / "db"
                    shutil.rmtree(directory, ignore_errors=True)
                    if phase == "run":
                        shutil.copytree(loaded, directory)
                    n = operations if phase == "run" else records
                    command = [
                        phase, store, "-P", str(ROOT / "workloads" / workload), "-threads", "1",
                        "-p", f"recordcount={records}", "-p", f"operationcount={operations}", "-p", "seed=1",
                        "-p", f"{store}.dir={directory}",
                    ]  # fmt: skip
                    trial_spec = spec(command)
                    if side == "loadstone":
                        cpu_ns = float(sum(trial(trial_spec)["cpu_ns"]))
                    else:
                        cpu_ns = float(run([BARE, side], json.dumps(trial_spec)).stdout)
                    costs[side] = cpu_ns / n
                # The first pair warms the page cache.
                if repeat:
                    pairs.append((costs["bare"], costs["loadstone"]))
                    timed.append((costs["bare"], costs["timed"]))
                if len(pairs) >= 6 and narrow(ratio_of(pairs)):
                    break
            ratio = ratio_of(pairs)
            other, mine = (sorted(side)[len(pairs) // 2] for side in zip(*pairs, strict=True))
            print(f"(b) {store}, {name}: CPU per operation of a bare loop ÷ Loadstone {ratio}")
            print(f"    ÷ the bare loop with a clock and a histogram {ratio_of(timed)}")
            print(
                f"    {other:,.0f} against {mine:,.0f} ns; goal lower end at least 0.96: {verdict(ratio.low >= 0.96)}"
            )


def ten_thousand_clients(scale: int) -> None:
    """(c) Peak memory with 10,000 clients."""
    command = ["run", "null", "-P", str(ROOT / "workloads" / "workloada"), "-threads", "10000"]
    trial_spec = spec([*command, "-p", "recordcount=1000000", "-p", f"operationcount={2_000_000 * scale}"])
    memory = int(str(trial(trial_spec)["memory_bytes_max"]))
    trial_spec["pace"] = {
        "mode": "open",
        "rate": [{"from": 200_000, "to": 200_000, "seconds": 0}],
        "arrival": "poisson",
    }
    paced = trial(trial_spec)
    paced_memory = int(str(paced["memory_bytes_max"]))
    late = int(str(paced["late_generator"])) / int(str(paced["operations"]))
    goal = 200_000_000
    met = verdict(max(memory, paced_memory) <= goal)
    print(f"(c) 10,000 clients on null: peak memory {memory / 1e6:.0f} MB in the closed loop,")
    print(f"    {paced_memory / 1e6:.0f} MB at 200,000 op/s, Poisson ({late:.3%} over 1 ms late)")
    print(f"    goal at most 200 MB: {met}")


def main() -> int:
    """Runs the selected comparisons in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only check that it works")
    parser.add_argument("--only", choices=list("abcdefghijs"), help="one part")
    parser.add_argument("--against", type=Path, metavar="ENGINE", help="(a) to (c) against this engine binary instead")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f"warning: load average {load:.1f}: the machine is not quiet, the intervals will be wide",
            file=sys.stderr,
        )
    if args.only != "d":
        build()
    work = Path(tempfile.mkdtemp(prefix="loadstone-bench-"))
    try:
        if args.against:
            compare_with_before(args.against, args.only, work, 1 if args.quick else 10, 2 if args.quick else 60)
            return 0
        if args.only in (None, "a"):
            compare_with_ycsb(work, 1 if args.quick else 10, 2 if args.quick else 6)
        if args.only in (None, "b"):
            compare_with_bare_loop(work, 1, 2 if args.quick else 40)
        if args.only in (None, "c"):
            ten_thousand_clients(1)
        if args.only in (None, "d"):
            small_commands(3 if args.quick else 9)
            measure_scale(work, 3 if args.quick else 9, 2 if args.quick else REPEATS)
        if args.only in (None, "e"):
            few, many, rate = (2_000, 6_000, 2_000) if args.quick else (500_000, 2_000_000, 8_000)
            compare_with_cassandra_stress(work, few, many, rate)
        if args.only in (None, "f"):
            compare_with_redis_benchmark(2 if args.quick else 8, 20_000 if args.quick else 500_000)
        if args.only in (None, "g"):
            few, many = (2_000, 6_000) if args.quick else (100_000, 500_000)
            compare_with_performance_evaluation(1 if args.quick else 3, few, many)
        if args.only in (None, "h"):
            measure_binding_cost(ycsb_class_path(work), 1 if args.quick else 6, 0.01 if args.quick else 1)
        if args.only in (None, "i"):
            compare_with_fio(work, (64 if args.quick else 4_096) << 20, 2 if args.quick else 9)
        if args.only in (None, "j"):
            compare_with_testdfsio(work, 16 if args.quick else 256, 1 if args.quick else 8)
        if args.only in (None, "s"):
            sorting(work, args.quick)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
