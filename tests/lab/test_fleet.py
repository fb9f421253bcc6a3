"""Several engines for one trial: splitting, simultaneous start, exact merging, and lost engines."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from event_support import SECOND, earlier, interval, outcome, parse_events, ready, summary
from lab_support import experiment, loadstone, single_folder, start, trials
from loadstone.engine import program
from loadstone.engine.events import Event, Interval, Note, Outcome, Result, parse_event
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.engine.trial import EngineError
from loadstone.fleet.merge import Merger
from loadstone.fleet.segments import split_spec
from loadstone.results import hlog
from loadstone.results.trial_result import TrialResult
from loadstone.runner import engine_figures
from results_support import intervals, merge_by_tag
from tera_support import tera

LOST = EngineError("the load generator was killed by SIGKILL", "it wrote nothing", -9)
HEAD = """
systems: {engine: {store: "null"}}
workload: {file: %s/workloads/workloada, properties: {recordcount: 1000}}
clients: 6
fleet: {engines: 3}
repeats: 2
"""


# An engine whose second segment becomes ready and then sends nothing.
LATE = """#!%s
import os, subprocess, sys, threading, time
real = "%s"
if sys.argv[1:] != ["trial"]:
    os.execv(real, [real, *sys.argv[1:]])
spec = sys.stdin.readline()
pipe = subprocess.PIPE
process = subprocess.Popen([real, "trial"], stdin=pipe, stdout=pipe, text=True)
process.stdin.write(spec)
process.stdin.flush()
def forward():
    for line in sys.stdin:
        process.stdin.write(line)
        process.stdin.flush()
    process.stdin.close()
threading.Thread(target=forward, daemon=True).start()
late = '"k": 1' in spec
for line in process.stdout:
    if not late or '"ready"' in line:
        print(line, end="", flush=True)
if late:
    time.sleep(600)
os._exit(process.wait())
"""


def titles(segments: int) -> list[str]:
    """The titles of the segments of a trial."""
    return [f"segment {segment}/{segments}" for segment in range(segments)]


def merge(*received: tuple[int, dict[str, Any] | EngineError], segments: int) -> tuple[list[Interval], Result]:
    """The merged events of several segments."""
    events: list[Event] = []
    with Merger(titles(segments)) as merger:
        for segment, event in received:
            if isinstance(event, EngineError):
                merger.lose(segment, event)
                events += merger.take(event)
            else:
                line = json.dumps(event)
                merger.hear(segment, line)
                events += merger.take(parse_event(line))
        return [event for event in events if isinstance(event, Interval)], merger.result()


def count_by_status(outcomes: Iterable[Outcome]) -> Counter[tuple[str, str]]:
    """The number of operations by operation type and status."""
    counts: Counter[tuple[str, str]] = Counter()
    for result in outcomes:
        counts[result.operation, result.status] += result.count
    return counts


def events_of(segment: int, *events: dict[str, Any]) -> list[tuple[int, dict[str, Any] | EngineError]]:
    """The events of one segment."""
    return [(segment, event) for event in events]


def test_merging_one_engine_changes_nothing() -> None:
    events = [ready(), interval(0, [outcome("READ", "OK", [1, 2])]), summary([outcome("READ", "OK", [1, 2])])]
    merged, result = merge(*((0, event) for event in events), segments=1)
    first, second, third = parse_events(*events)
    assert merged == [second]
    assert (result.ready, result.summary, result.notes) == (first, third, ())


@pytest.mark.parametrize("seed", range(20))
def test_merged_segments_equal_one_engine(seed: int) -> None:
    draw = random.Random(seed)
    segments = draw.randint(2, 5)
    sent: list[list[tuple[int, dict[str, Any] | EngineError]]] = []
    every: Counter[tuple[str, str]] = Counter()
    for segment in range(segments):
        intervals, outcomes = [], []
        for k in range(draw.randint(1, 6)):
            here = [outcome("READ", draw.choice(["OK", "ERROR"]), [draw.randint(1, 10**9) for _ in range(5)])]
            intervals.append(interval(k, here))
            outcomes += here
        for entry in outcomes:
            every[entry["operation"], entry["status"]] += entry["count"]
        sent.append(events_of(segment, ready(), *intervals, summary(outcomes)))
    # Segments arrive in any order, the events of each segment in order.
    order = draw.sample([k for k, events in enumerate(sent) for _ in events], sum(map(len, sent)))
    merged, result = merge(*(sent[k].pop(0) for k in order), segments=segments)
    assert [entry.k for entry in merged] == sorted({entry.k for entry in merged})
    assert count_by_status(entry for part in merged for entry in part.outcomes) == every
    assert count_by_status(result.summary.outcomes) == every
    assert result.summary.operations == every.total()


def test_an_interval_waits_for_the_slowest_running_segment() -> None:
    first, second, ended = (json.dumps(event) for event in (interval(0, []), interval(1, []), summary([])))
    with Merger(titles(2)) as merger:

        def complete(segment: int, line: str) -> list[int]:
            merger.hear(segment, line)
            return [event.k for event in merger.take(parse_event(line)) if isinstance(event, Interval)]

        assert complete(0, first) == complete(0, second) == []
        assert complete(1, first) == [0]
        assert complete(1, ended) == [1]


def test_unmergeable_event_is_an_error() -> None:
    damaged = interval(0, [{**outcome("READ", "OK", [1]), "service": "no histogram"}])
    with Merger(titles(2)) as merger:
        merger.hear(0, json.dumps(interval(0, [outcome("READ", "OK", [1])])))
        with pytest.raises(EngineError, match="a histogram cannot be merged"):
            merger.hear(1, json.dumps(damaged))


def test_late_additions_to_an_interval_are_written(tmp_path: Path) -> None:
    late = interval(1, [], earlier=[earlier(0, [outcome("READ", "OK", [900])])])
    merged, _ = merge(
        *events_of(0, ready(), interval(0, [outcome("READ", "OK", [100])]), late, summary([])),
        *events_of(1, ready(), interval(0, [outcome("READ", "OK", [200])]), interval(1, []), summary([])),
        segments=2,
    )
    with (tmp_path / "run.hlog").open("w") as file:
        writer = hlog.Writer(file)
        for value in merged:
            writer.write_interval(value)
    histograms = merge_by_tag(intervals(tmp_path / "run.hlog"))["READ"]
    assert sorted(histograms.counts.elements()) == [100, 200, 900]


def test_percentiles_are_of_all_operations_across_segments() -> None:
    slow, fast = [10**6] * 100, [10**3] * 9_900
    parts = [events_of(k, ready(), summary([outcome("READ", "OK", times)])) for k, times in enumerate((slow, fast))]
    _, result = merge(*parts[0], *parts[1], segments=2)
    values = {value.metric: value.value for value in engine_figures.summarize_run(result, 0)}
    together = Histogram()
    for entry in result.summary.outcomes:
        together.add_histogram(decode_histogram(entry.service))
    assert values["read.p99"] == together.value_at_quantile(0.99) < 2_000
    assert values["read.p99.9"] == together.value_at_quantile(0.999) > 900_000


def test_throughput_divides_by_the_longest_segment() -> None:
    short = events_of(0, ready(), summary([], completed=100, measured_ns=SECOND))
    long = events_of(1, ready(), summary([], completed=100, measured_ns=2 * SECOND))
    _, result = merge(*short, *long, segments=2)
    assert result.summary.throughput == 100


def test_a_trial_ends_as_its_worst_segment() -> None:
    for ends, worst in ((("done", "stopped"), "stopped"), (("failed", "done"), "failed"), (("lease", "done"), "lease")):
        parts = [events_of(k, ready(), summary([], end=end)) for k, end in enumerate(ends)]
        assert merge(*parts[0], *parts[1], segments=2)[1].summary.end == worst


def test_lost_segment_is_named_and_the_remainder_retained() -> None:
    well = events_of(1, ready(), interval(0, []), summary([outcome("READ", "OK", [5])], completed=1))
    merged, result = merge(*events_of(0, ready()), (0, LOST), *well, segments=2)
    assert [entry.k for entry in merged] == [0]
    assert result.notes == (Note("lost-segment", f"segment 0/2: {LOST.args[0]}", "it wrote nothing"),)
    assert result.summary.completed == 1


def test_engine_failing_after_its_summary_is_lost() -> None:
    with pytest.raises(EngineError, match="SIGKILL"):
        merge(*events_of(0, ready(), summary([])), (0, LOST), segments=1)


def test_specs_divide_clients_rate_and_operations() -> None:
    specs = split_spec({"clients": 6, "until": {"operations": 10}}, 3)
    assert [spec["segment"] for spec in specs] == [{"k": k, "n": 3} for k in range(3)]
    assert all((spec["clients"], spec["wait_for_start"]) == (6, True) for spec in specs)
    assert "wait_for_start" not in split_spec({}, 1)[0]


def count_outcomes(trial: TrialResult) -> int:
    """The operations with any outcome; operations without an answer are censored."""
    return sum(sum(trial.statuses.get(step, {}).values()) for step in ("READ", "UPDATE"))


@pytest.mark.parametrize("more", ["rate: 3000\nmeasure: {warmup: 200ms, duration: 1s}", "measure: {operations: 30001}"])
def test_three_engines_do_what_one_would(tmp_path: Path, more: str) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, HEAD + more), "--no-report")
    folder = single_folder(tmp_path)
    for trial in trials(folder):
        assert trial.end == "done"
        counts = 3_000 if "rate" in more else 30_001
        # On a slow host, operations that were due in the window may end after it.
        done = trial.value("operations") or 0
        assert done == counts if "rate" not in more else 0 < done <= counts
        assert count_outcomes(trial) == counts
        assert trial.value("due") == (counts if "rate" in more else None)
        assert [trial.value(name) for name in ("segments", "segments.lost", "errors")] == [3, 0, 0]
        files = folder.path / "trials" / trial.trial
        assert len([*files.glob("run.*.events.jsonl")]) == len([*files.glob("run.*.spec.json")]) == 3
        histograms = merge_by_tag(intervals(files / "run.hlog"))
        assert sum(histogram.count for tag, histogram in histograms.items() if tag in ("READ", "UPDATE")) == done


def engines_of(lab: int) -> list[int]:
    """The processes of the engines started by a lab."""
    results = []
    for path in Path(f"/proc/{lab}/task").glob("*/children"):
        results += [int(pid) for pid in path.read_text().split()]
    return [pid for pid in results if b"trial" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_killed_engine_makes_only_its_trial_invalid(tmp_path: Path) -> None:
    file = experiment(tmp_path, HEAD + "rate: 600\nmeasure: {warmup: 0, duration: 5s}")
    lab = start(tmp_path, "run", file, "--no-report")
    deadline = time.monotonic() + 60
    logs = tmp_path / "results"
    # The load has certainly begun once an interval is recorded.
    while not any('"interval"' in path.read_text() for path in logs.rglob("run.1.events.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(engines_of(lab.pid)[1], signal.SIGKILL)
    _, error = lab.communicate(timeout=60)
    first, second = trials(single_folder(tmp_path))
    assert (first.end, second.end) == ("lost", "done"), error
    assert (first.value("segments"), first.value("segments.lost")) == (3, 1)
    # Two of three segments completed.
    assert first.value("due") == count_outcomes(first) == 2_000
    assert [note.message for note in first.notes if note.name == "lost-segment"] == [
        "segment 1/3: the load generator was killed by SIGKILL"
    ]
    assert "lost-segment" in loadstone(tmp_path, "show", single_folder(tmp_path).path).stdout


def test_engine_that_cannot_start_ends_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "engine"
    real = program.find_engine()
    engine.write_text(
        f'#!/bin/sh\n[ "$1" = trial ] || exec {real} "$@"\n'
        f"read -r spec\ncase $spec in *'\"k\": 1'*) echo 'error: no memory' >&2; exit 1;; esac\n"
        f'{{ printf "%s\\n" "$spec"; exec cat; }} | exec {real} trial\n'
    )
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(program.VARIABLE, str(engine))
    started = time.monotonic()
    loadstone(
        tmp_path, "run", experiment(tmp_path, HEAD + "measure: {warmup: 0, duration: 60s}"), "--no-report", code=1
    )
    assert time.monotonic() - started < 55, "the launch did not wait for the other segments"
    first, *_ = trials(single_folder(tmp_path))
    assert first.end == "failed"
    assert first.notes[-1].message == "no memory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("clients: 6", "clients: 2"), "fleet.engines is 3, but some trials have fewer clients: 2"),
        (HEAD.replace('"null"', "lmdb"), "lmdb keeps its data in files, which several load generators cannot share"),
        (HEAD.replace("engines: 3", "engines: 0"), "fleet.engines must be a whole number of at least 1, got 0"),
        (HEAD + "load: {clients: 1}", "fewer clients: 1"),
    ],
)
def test_an_invalid_fleet_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in loadstone(tmp_path, "run", experiment(tmp_path, text), code=2).stderr


def test_engine_killed_at_the_timeout_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, engine = program.find_engine(), tmp_path / "engine"
    engine.write_text(LATE % (sys.executable, real))
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(program.VARIABLE, str(engine))
    text = HEAD.replace("repeats: 2", "repeats: 1") + "measure: {warmup: 0, duration: 300ms}\ntimeout: 2s"
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report", code=1)
    (trial,) = trials(single_folder(tmp_path))
    messages = [note.message for note in trial.notes]
    if trial.end == "lost":
        assert "segment 1/3: run: the load generator did not finish within 2 s" in messages
    else:
        # On a busy host, all three engines may be too slow.
        assert trial.end == "failed"
        assert messages[-1] == "run: the load generator did not finish within 2 s"


SORT = """
systems: {local: {store: file}}
workload: {sort: {rows: 400000, parts: 3, memory: "{memory}"}}
fleet: {engines: 2}
vary: {memory: [64MB, 1GB]}
repeats: 2
"""
# One engine prepares and commits; two engines share the stages in between.
BEFORE = ("generate.prepare", "generate.generate", "generate.commit", "sort.prepare", "sort.sample")
SORTS = {"64MB": ("sort.sort", "sort.merge"), "1GB": ("sort.sort_in_memory",)}
AFTER = ("sort.commit", "validate.prepare", "validate.validate", "validate.commit")
ROW_BYTES = 100


def summaries(files: Path, name: str) -> list[dict[str, Any]]:
    """The summary of each engine of a phase or stage."""
    last = [path.read_text().splitlines()[-1] for path in sorted(files.glob(f"{name}.*events.jsonl"))]
    return [json.loads(line) for line in last]


def test_two_engines_sort_what_one_would(tmp_path: Path) -> None:
    checksum = tera(Path(program.find_engine()), "teragen", "400000", tmp_path / "rows").checksum
    loadstone(tmp_path, "run", experiment(tmp_path, SORT), "--no-report")
    folder = single_folder(tmp_path)
    for trial in trials(folder):
        assert trial.end == "done", trial.notes
        assert (trial.facts["checksum"], trial.facts["rows"]) == (checksum, 400_000)
        assert (trial.value("validate.faults"), trial.value("validate.rows")) == (0, 400_000)
        files = folder.path / "trials" / trial.trial
        ended, seconds, bytes_moved = 0, 0.0, [0, 0]
        for name in (*BEFORE, *SORTS[str(trial.config["memory"])], *AFTER):
            result = summaries(files, name)
            alone = name.endswith(("prepare", "commit"))
            assert len(result) == (1 if alone else 2), name
            if name.endswith(("generate.generate", "sort.sort", "merge", "in_memory", "validate.validate")):
                assert sum(summary["sort"]["rows"] for summary in result) == 400_000
                assert all(summary["sort"]["rows"] for summary in result)
            # No engine begins a stage before all engines have completed the preceding stage.
            assert min(summary["start_unix_ns"] for summary in result) >= ended, name
            ended = max(summary["start_unix_ns"] + summary["measured_ns"] for summary in result)
            if name.startswith("sort."):
                seconds += max(summary["sort"]["seconds"] for summary in result)
                bytes_moved[0] += sum(summary["sort"]["bytes_read"] for summary in result)
                bytes_moved[1] += sum(summary["sort"]["bytes_written"] for summary in result)
        assert (trial.value("segments"), trial.value("segments.lost"), trial.facts["engines"]) == (2, 0, 2)
        assert trial.value("throughput") == pytest.approx(400_000 * ROW_BYTES / seconds)
        assert trial.value("runtime") == pytest.approx(seconds * 1e9)
        assert [trial.value("returned"), trial.value("stored")] == bytes_moved


DFSIO = """
systems: {local: {store: file}}
workload: {dfsio: {operation: "{what}", files: 3, file_size: 2MB, buffer: 64KB, sync: close}}
clients: 2
fleet: {engines: 2}
vary: {what: [write, read]}
measure: {verify: true}
repeats: 2
"""


def test_two_engines_move_the_files_that_one_would(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, DFSIO), "--no-report")
    folder = single_folder(tmp_path)
    for trial in trials(folder):
        assert trial.end == "done", trial.notes
        reads = trial.config["what"] == "read"
        assert [trial.value(name) for name in ("segments", "segments.lost", "errors")] == [2, 0, 0]
        assert trial.value("operations") == 3 * 32
        assert trial.value("returned" if reads else "stored") == 6 << 20
        if reads:
            assert (trial.value("verified"), trial.value("wrong")) == (3 * 32, 0)
        files = folder.path / "trials" / trial.trial
        results = [summary["files"] for summary in summaries(files, str(trial.config["what"]))]
        assert sorted(summary["done"] for summary in results) == [1, 2]
        if reads:
            assert sorted(summary["files"]["done"] for summary in summaries(files, "load")) == [1, 2]
        task_ns = sum(summary["task_ns"] for summary in results)
        assert trial.value("dfsio.task_throughput") == pytest.approx((6 << 20) * 1e9 / task_ns)
        first = min(summary["first_start_unix_ns"] for summary in results)
        last = max(summary["last_done_unix_ns"] for summary in results)
        assert trial.value("throughput") == pytest.approx((6 << 20) * 1e9 / (last - first))
