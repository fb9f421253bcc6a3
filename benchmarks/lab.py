"""The lab at scale: ten thousand trials planned, judged and reported; and the time of small commands."""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measure import peak_of, run, verdict

from loadstone.results import lines
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question
from loadstone.results.trial_result import Series, TrialResult, values_by_metric
from loadstone.results.value import PERCENTILES, Value

ROOT = Path(__file__).resolve().parent.parent
LOADSTONE = str(Path(sys.executable).with_name("loadstone"))
SYSTEMS = ("rocksdb", "lmdb", "fjall", "redb", "null")
LETTERS = ("a", "b", "c", "d")
CLIENTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96)
REPEATS = 50
PLAN_SECONDS, REPORT_SECONDS, REPORT_BYTES, HELP_SECONDS = 2.0, 60.0, 1e9, 0.15
SMALL_CPU_SECONDS = 0.5
OPEN = [sys.executable, "-c", "import sys, loadstone; loadstone.open(sys.argv[1]).trials"]
OPEN_SECONDS, OPEN_BYTES = 2.0, 500e6

EXPERIMENT = f"""
question: Which of five stores holds most at any number of clients?
systems: {list(SYSTEMS)}
workload: {{file: "{ROOT}/workloads/workload{{letter}}", properties: {{recordcount: 1000}}}}
vary: {{system: {list(SYSTEMS)}, letter: {list(LETTERS)}, clients: {list(CLIENTS)}}}
repeats: {REPEATS}
compare: {{by: system, baseline: lmdb}}
"""


def measure_scale(work: Path, repeats: int, blocks: int = REPEATS) -> None:
    """(d) Prints help, and plans, opens and reports ten thousand trials, with a goal for each command."""
    count = len(SYSTEMS) * len(LETTERS) * len(CLIENTS) * blocks
    file = work / "large.yaml"
    file.write_text(EXPERIMENT)
    goals: list[tuple[str, list[str], int, float, float | None]] = [
        ("(d) loadstone --help", [LOADSTONE, "--help"], repeats, HELP_SECONDS, None),
        ("(d) 10,000 trials planned", [LOADSTONE, "run", str(file), "--dry-run"], repeats, PLAN_SECONDS, None),
    ]
    folder = create_folder(work / "results/large/now", blocks)
    goals.append((f"(d) {count:,} trials opened", [*OPEN, str(folder.path)], repeats, OPEN_SECONDS, OPEN_BYTES))
    report = [LOADSTONE, "report", str(folder.path), "-o", str(work / "report")]
    goals.append((f"(d) {count:,} trials judged and reported", report, 1, REPORT_SECONDS, REPORT_BYTES))
    for name, command, times, seconds_goal, bytes_goal in goals:
        seconds, peak = time_command(command, times)
        met = seconds <= seconds_goal and (bytes_goal is None or peak <= bytes_goal)
        memory = "" if bytes_goal is None else f", {peak / 1e6:.0f} MB at most (goal {bytes_goal / 1e6:.0f})"
        print(f"{name}: {seconds:.3f} s (goal {seconds_goal:g}){memory}: {'met' if met else 'NOT met'}")


def small_commands(repeats: int) -> None:
    """(d) CPU time of commands that scripts and the test suite start often, on a run of a few trials."""
    results = ROOT / "tests/fixtures/results"
    show = ["show", str(results / "v2")]
    # An installed Python keeps its bytecode; without it, each start compiles every module (0.1 s).
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for arguments in (["--help"], ["list", "--results", str(results)], show, ["run", "--help"], ["check", "--help"]):
        _, *seconds_of = (run([LOADSTONE, *arguments]).cpu_seconds for _ in range(repeats + 1))
        seconds = statistics.median(seconds_of)
        name = " ".join(word.removeprefix(f"{ROOT}/") for word in arguments)
        met = verdict(seconds <= SMALL_CPU_SECONDS)
        print(f"(d) loadstone {name}: {seconds:.3f} s of CPU time (goal {SMALL_CPU_SECONDS:g}): {met}")


def time_command(command: Sequence[str], times: int) -> tuple[float, int]:
    """The median of a command's wall times, s, and the largest peak of resident memory, B."""
    seconds, peaks = [], []
    for _ in range(times):
        start = time.monotonic()
        peaks.append(peak_of(command))
        seconds.append(time.monotonic() - start)
    return statistics.median(seconds), max(peaks)


def create_folder(path: Path, blocks: int) -> Folder:
    """Writes the result folder of an experiment, with synthetic figures."""
    question = Question(text="Which of five stores holds most?", by="system", baseline="lmdb", at_least=blocks)
    folder = Folder.create_folder(path, "large", question, interleaved=True, environment={"environment": 1})
    draw = random.Random(1)
    with (path / "values.jsonl").open("w") as table:
        for block in range(1, blocks + 1):
            for system in SYSTEMS:
                for letter in LETTERS:
                    for clients in CLIENTS:
                        result = trial(draw, system, letter, clients, block)
                        table.write(json.dumps(result.to_json()) + "\n")
                        directory = path / "trials" / result.trial
                        directory.mkdir()
                        (directory / "series.json").write_text(json.dumps(series(draw, result).to_json()))
    lines.mend_file(path / "values.jsonl")
    return folder


def trial(draw: random.Random, system: str, letter: str, clients: int, block: int) -> TrialResult:
    """A trial on a curve with a knee."""
    rate = draw.gauss(50_000, 2_000) * (1 + SYSTEMS.index(system) / 5) * clients
    rate /= 1 + 0.05 * (clients - 1) + 0.0004 * clients * (clients - 1)
    mean = clients / rate * 1e9
    results = [Value("throughput", rate, "op/s", round(10 * rate)), Value("errors", 0, "operations", round(10 * rate))]
    for operation in ("all", "read", "update"):
        results.append(Value(f"{operation}.mean", mean, "ns", round(5 * rate)))
        results += [
            Value(f"{operation}.{name}", mean * (0.5 + 4 * share**20), "ns", round(5 * rate))
            for name, share in PERCENTILES.items()
        ]
    for name in ("device.read_per_operation", "device.written_per_operation"):
        results.append(Value(name, draw.uniform(100, 200), "B/op", round(10 * rate)))
    for name in ("cpu.steal", "cpu.others", "cpu.busy", "device.utilisation"):
        results.append(Value(name, draw.uniform(0, 0.04), "share", 10))
    return TrialResult(
        trial=f"{block:02}-{system}-{letter}-{clients}",
        config={"system": system, "letter": letter, "clients": clients},
        repeat=block,
        values=values_by_metric(*results),
        clients=clients,
        loop="closed",
        facts={"durability": "os", "cpu_model": "one", "kernel": "one", "file_system": "ext4", "profile": "release"},
        statuses={"READ": {"OK": round(5 * rate)}, "UPDATE": {"OK": round(5 * rate)}},
        order=block,
    )


def series(draw: random.Random, result: TrialResult) -> Series:
    """A time series of ten seconds."""
    rate, mean = result.values["throughput"].value, result.values["all.mean"].value
    rates = tuple(draw.gauss(rate, 0.02 * rate) for _ in range(10))
    seconds = tuple(float(i) for i in range(10))
    return Series(seconds, (1.0,) * 10, rates, (mean,) * 10, (3 * mean,) * 10, (0,) * 10)
