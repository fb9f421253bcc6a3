"""Other tools' files with a planted difference between the sides, and Loadstone's experiments with one changed fact."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge_support import Change, facts
from known_truth_imports import Ycsb, compare_files
from known_truth_support import simulate_results, typical
from loadstone.commands import show
from loadstone.commands.open_results import from_file
from loadstone.importers.read import read_all
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, TrialResult

HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
START_NS = 1_795_000_000 * 10**9
# Facts that a comparison of records needs and YCSB's report does not contain.
KNOWN: Mapping[str, Scalar] = {
    "records": 1000,
    "record_bytes": 1000,
    "mix": "100 % read",
    "distribution": "zipfian",
}
REPEATS = 6
NOTHING: Mapping[str, Scalar] = MappingProxyType({})


def noise(seed: object, n: int = REPEATS, deviation: float = 0.01) -> list[float]:
    """Factors around 1, one for each repeat."""
    return typical(n, deviation, seed)


def ycsb(rate: float, seed: object, properties: str = "", n: int = REPEATS, clients: int = 10) -> list[str]:
    """Logs of YCSB, one for each repeat, whose command line has these arguments."""
    texts = []
    for factor in noise(seed, n):
        text = Ycsb(rate * factor, 0.98e6 * clients / rate / factor, 3e6 * clients / rate / factor).text()
        texts.append(text.replace("-threads 10 ", f"-threads {clients} {properties} "))
    return texts


def stress(rate: float, seed: object, option: str, p99_ms: float = 30.0, target: int = 500) -> list[str]:
    """Logs of cassandra-stress at a rate, set by `throttle` or `fixed`."""
    texts = []
    for factor in noise(seed):
        figures = {"mean": 5.0, "median": 4.0, "95th percentile": 15.0, "99th percentile": p99_ms * factor}
        figures |= {"99.9th percentile": 2 * p99_ms, "max": 4 * p99_ms}
        latencies = [f"Latency {name:15} : {value:6.1f} ms [WRITE: {value:.1f} ms]" for name, value in figures.items()]
        texts.append(
            "\n".join(
                [
                    f"cassandra-stress write n=20000 cl=QUORUM -rate threads=20 {option}={target}/s",
                    "******************** Stress Settings ********************",
                    "Rate:",
                    "  Thread Count: 20",
                    f"  OpsPer Sec: {target}",
                    "Running WRITE with 20 threads for 20000 iteration",
                    "",
                    "Results:",
                    f"Op rate                   : {rate * factor:8,.0f} op/s  [WRITE: {rate * factor:,.0f} op/s]",
                    *latencies,
                    "Total partitions          :     20,000 [WRITE: 20,000]",
                    "Total errors              :          0 [WRITE: 0]",
                    "Total operation time      : 00:01:00",
                    "END",
                ]
            )
            + "\n"
        )
    return texts


def fio(rate: float, seed: object, **options: object) -> list[str]:
    """fio's JSON reports of one job with these options."""
    texts = []
    for factor in noise(seed):
        iops = rate * factor
        total = round(iops * 60)
        clat = {"min": 1000, "max": 9_000_000, "mean": 1e9 / iops, "N": total, "percentile": {"99.000000": 3e9 / iops}}
        read_ = {
            "total_ios": total,
            "io_bytes": 4096 * total,
            "bw_bytes": 4096 * iops,
            "iops": iops,
            "runtime": 60_000,
            "clat_ns": clat,
        }
        idle = {"total_ios": 0, "io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "clat_ns": {}}
        settings = {"rw": "randread", "bs": "4k", "ioengine": "io_uring", "direct": 1, "iodepth": 1, **options}
        job = {
            "jobname": "reads",
            "groupid": 0,
            "error": 0,
            "job options": {name: str(value) for name, value in settings.items()},
            "read": read_,
            "write": idle,
            "trim": idle,
        }
        texts.append(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    return texts


def dfsio(speed: float, seed: object, files: int) -> list[str]:
    """Results of TestDFSIO's write test at `speed`, MB/s per task."""
    return [
        "\n".join(
            [
                "----- TestDFSIO ----- : write",
                "            Date & time: Sat Nov 21 09:41:53 UTC 2026",
                f"        Number of files: {files}",
                " Total MBytes processed: 4096",
                f"      Throughput mb/sec: {speed * factor:.4f}",
                f" Average IO rate mb/sec: {speed * factor * 1.1:.4f}",
                "  IO rate std deviation: 3.2",
                f"     Test exec time sec: {4096 / speed / factor:.2f}",
            ]
        )
        + "\n"
        for factor in noise(seed)
    ]


def performance(rate: float, seed: object, **options: object) -> list[str]:
    """Logs of HBase's PerformanceEvaluation with one client."""
    texts = []
    for factor in noise(seed):
        settings = {"cmdName": "sequentialWrite", "numClientThreads": 1, "totalRows": 100_000, "valueSize": 1000}
        milliseconds = round(100_000 / rate / factor * 1000)
        texts.append(
            "\n".join(
                [
                    f"hbase.PerformanceEvaluation: test run options={json.dumps({**settings, **options})}",
                    f"[TestClient-0] hbase.PerformanceEvaluation: Latency (us) : mean={0.98e6 / rate / factor:.2f},"
                    f" min=10.00, max=706137.00, stdDev=11.46, 50th=90.00, 95th=1000.00, 99th=31814.00",
                    "[TestClient-0] hbase.PerformanceEvaluation: Num measures (latency) : 99999",
                    f"[TestClient-0] hbase.PerformanceEvaluation: Finished TestClient-0 in {milliseconds}ms over"
                    " 100000 rows",
                    f"hbase.PerformanceEvaluation: [SequentialWriteTest] Summary of timings (ms): [{milliseconds}]",
                ]
            )
            + "\n"
        )
    return texts


def side(
    name: str,
    texts: Sequence[str],
    suffix: str = "log",
    begins: Sequence[int] = (),
    known: Mapping[str, Scalar] = NOTHING,
) -> ResultSet:
    """One side as `loadstone import` and `loadstone compare` read it: a file for each repeat."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}-{number}.{suffix}" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        imported = read_all(paths, {"variant": name, **known})
    times: Sequence[int | None] = begins or [None] * len(imported)
    trials = [replace(reading.result, start_unix_ns=time) for reading, time in zip(imported, times, strict=True)]
    series = {reading.result.trial: reading.series for reading in imported}
    return ResultSet(name, trials, Question(), series=series.get)


def alternating(first: int = 0, n: int = REPEATS) -> list[int]:
    """The start times of runs that alternate with the other side's runs, which start at another hour."""
    return [START_NS + at * 2 * HOUR_NS + first * HOUR_NS for at in range(n)]


def logs(
    slow: Sequence[str], fast: Sequence[str], *metrics: str, suffix: str = "log", known: Mapping[str, Scalar] = NOTHING
) -> ResultSet:
    """Files of two sides whose runs alternated."""
    sides = (side("plain", slow, suffix, alternating(0), known), side("tuned", fast, suffix, alternating(1), known))
    return compare_files(*sides, *metrics)


def plant_difference(
    ratio: float = 1.3,
    by: str = "copy",
    alter_second: Change | None = None,
    first: Mapping[str, Scalar] = NOTHING,
    known: Mapping[str, Scalar] = NOTHING,
) -> ResultSet:
    """An A/A experiment with a planted difference; `first` are facts of both sides, `known` of the second side only."""
    texts = simulate_results({"first": 1000.0, "second": 1000.0 * ratio}, change=facts(**first))

    def alter(trial: TrialResult) -> TrialResult:
        second = trial.config["system"] == "second"
        other = facts(**known)(trial) if second else trial
        other = alter_second(other) if alter_second is not None and second else other
        return replace(other, config={by: trial.config["system"]})

    trials = [alter(trial) for trial in texts.trials]
    return replace(texts, trials=trials, planned={trial.trial: trial.config for trial in trials})


def table(rows: Sequence[str], header: str, **question: object) -> ResultSet:
    """A CSV file with a question."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        imported = from_file(path, {})
    return replace(imported, question=Question(**question))  # type: ignore[arg-type]


def show_results(results: ResultSet, folder: Path, *arguments: str) -> dict[str, Any]:
    """The output of `loadstone show --json` with these arguments, for these results stored as a run of Loadstone."""
    stored = Folder.create_folder(folder, "liar", results.question, interleaved=results.interleaved)
    blocks: dict[int, dict[str, Mapping[str, Scalar]]] = {}
    for trial in results.trials:
        blocks.setdefault(trial.repeat, {})[trial.trial] = trial.config
    for block, trials in blocks.items():
        stored.record_block(block, trials)
    for trial in results.trials:
        stored.append_trial(trial)
        series = results.series(trial.trial)
        if series is not None:
            with stored.open_attempt(trial.trial) as files:
                (files / "series.json").write_text(json.dumps(series.to_json()))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert show.main([str(folder), "--json", *arguments]) == 0
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


def set_times(results: ResultSet, begin: Callable[[TrialResult], int]) -> ResultSet:
    """The results with start times."""
    return replace(results, trials=[replace(trial, start_unix_ns=begin(trial)) for trial in results.trials])
