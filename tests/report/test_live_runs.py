"""The live page's view of a run: metrics, attempts, trials and findings as they arrive."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from event_support import earlier, interval, outcome
from live_support import parse_families, serve, write_folder
from loadstone.engine.histogram import Histogram
from loadstone.live.catalogue import ResultCatalogue
from loadstone.live.metrics import BUCKETS, classic_histogram, labels_of, render_metrics
from loadstone.live.run import CHECKED_RUNNING, FollowedRun, is_locked
from loadstone.live.server import Watcher
from loadstone.live.tail import Tail
from loadstone.live.trial import Attempt, measure_use
from loadstone.results.fault import FaultRecord
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question
from loadstone.runner.trial import append_fault
from test_expectations import make_run, scatter


def write_attempt(directory: Path, intervals: int = 3) -> Attempt:
    """An attempt with some intervals."""
    directory.mkdir(parents=True, exist_ok=True)
    outcomes = [outcome("READ", "OK", [1_000_000, 2_000_000, 30_000_000]), outcome("UPDATE", "ERROR", [5_000_000])]
    lines = [json.dumps(interval(k, outcomes)) for k in range(intervals)]
    (directory / "run.events.jsonl").write_text("\n".join(lines) + "\n")
    attempt = Attempt(directory, "0001-a", {"system": 'a"\\\n', "step": 2, "9 lives": "x"}, 4)
    attempt.read_new()
    return attempt


def test_metrics_are_parsed_by_prometheus(tmp_path: Path) -> None:
    text = render_metrics(
        FollowedRun(write_folder(tmp_path / "a", make_run({"a": scatter(1000)}))), [write_attempt(tmp_path / "t")]
    )
    families = parse_families(text)
    (read,) = [sample for sample in families["loadstone_operations"].samples if sample.labels["step"] == "READ"]
    assert read.value == 9
    plan = {"repeat": "4", "block": "4", "system": 'a"\\\n', "vary_step": "2", "_9_lives": "x"}
    assert {"status": "OK", "window": "measured", **plan}.items() <= read.labels.items()
    buckets = {
        float(sample.labels["le"]): sample.value
        for sample in families["loadstone_latency_seconds"].samples
        if sample.name.endswith("_bucket") and sample.labels["step"] == "READ"
    }
    assert (buckets[5e-4], buckets[0.0025], buckets[0.05], buckets[float("inf")]) == (0, 6, 9, 9)


def test_similar_dimensions_keep_separate_labels(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path)
    attempt.config = {"a.b": 1, "a-b": "x", "a_b": None, "__name__": "y"}
    labels = labels_of(attempt)
    assert labels == {"a_b": "x", "a_b_": 1, "a_b__": None, "vary___name__": "y"} | {
        "repeat": 4,
        "block": 4,
        "trial": "0001-a",
    }
    assert parse_families(render_metrics(None, [attempt])) == {}
    results = make_run({"a": scatter(1000)})
    text = render_metrics(FollowedRun(write_folder(tmp_path / "a", results)), [attempt])
    (read,) = [
        sample for sample in parse_families(text)["loadstone_operations"].samples if sample.labels["step"] == "READ"
    ]
    assert read.labels["vary___name__"] == "y"


def test_buckets_are_cumulative_and_complete() -> None:
    histogram = Histogram()
    for index in range(0, 40_000, 37):
        histogram.counts[index] += index % 5
    samples = classic_histogram(histogram, {})
    counts = [value for suffix, _, value in samples if suffix == "_bucket"]
    assert counts == sorted(counts)
    assert counts[-1] == histogram.count
    assert len(counts) == len(BUCKETS) + 1


def test_second_scrape_contains_new_operations(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path / "t", 1)
    run = FollowedRun(write_folder(tmp_path / "a", make_run({"a": scatter(1000)})))
    first = render_metrics(run, [attempt])
    assert render_metrics(run, [attempt]) == first
    with (tmp_path / "t/run.events.jsonl").open("a") as file:
        file.write(json.dumps(interval(1, [outcome("READ", "OK", [1_000_000] * 5)])) + "\n")
    attempt.read_new()
    counts = {
        sample.labels["step"]: sample.value
        for sample in parse_families(render_metrics(run, [attempt]))["loadstone_latency_seconds"].samples
        if sample.name.endswith("_count")
    }
    assert counts == {"READ": 8, "UPDATE": 1}


def test_segments_of_a_trial_add_up(tmp_path: Path) -> None:
    line = json.dumps(interval(0, [outcome("READ", "OK", [1_000_000] * 10)], due=10)) + "\n"
    for segment in range(3):
        (tmp_path / f"run.{segment}.events.jsonl").write_text(line)
    attempt = Attempt(tmp_path, "t", {}, 1)
    attempt.read_new()
    (point,) = attempt.list_points()
    assert (point["throughput"], point["due"]) == (30, 30)


def test_late_operations_change_their_own_point(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path / "t", 1)
    (before,) = attempt.list_points()
    late = interval(1, [], earlier=[earlier(0, [outcome("READ", "OK", [900_000_000])])])
    with (tmp_path / "t/run.events.jsonl").open("a") as file:
        file.write(json.dumps(late) + "\n")
    attempt.read_new()
    after, _ = attempt.list_points()
    assert after["max"] > 10 * before["max"]
    assert after["k"] == before["k"]


def test_faults_are_known_while_in_effect(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path)
    record = FaultRecord("pause", ("a",), 2_000_000_000, 4_000_000_000, ordered_ns=2_100_000_000)
    append_fault(tmp_path / "faults.jsonl", 0, record)
    append_fault(tmp_path / "faults.jsonl", 1, FaultRecord("kill", ("b",), 9_000_000_000))
    # A trial without a fault is compared over the same windows.
    append_fault(tmp_path / "faults.jsonl", 2, FaultRecord("none", (), 2_000_000_000, ordered_ns=2_100_000_000))
    attempt.read_new()
    assert [*attempt.faults.values()] == [{"kind": "pause", "from": 2.1, "to": None}]
    append_fault(tmp_path / "faults.jsonl", 0, replace(record, held_ns=2_200_000_000, lifted_ns=4_500_000_000))
    (tmp_path / "faults.jsonl").open("a").write('{"fault": 2}\n{"fault": "x", "kind": 3}\n')
    attempt.read_new()
    assert [*attempt.faults.values()] == [{"kind": "pause", "from": 2.2, "to": 4.5}]


def write_sample(path: Path, second: int) -> None:
    """Appends a sample of a host with one processor in use."""
    append_sample(path, second * 10**9, 100 * second)


def append_sample(path: Path, at_ns: int, ticks: int) -> None:
    """Appends a sample of a host whose processors were busy and idle for this time."""
    busy = [ticks, 0, 0, ticks, 0, 0, 0, 0]
    sample = {"unix_ns": at_ns, "monotonic_ns": at_ns, "ticks_per_second": 100}
    with path.open("a") as file:
        file.write(json.dumps({**sample, "processors": {"cpu": busy}, "processes": {}, "memory": {}}) + "\n")


def test_samples_in_close_succession_share_a_point(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path)
    path = tmp_path / "observed.jsonl"
    for at_ns, ticks in ((0, 0), (10**9, 100), (1_004_000_000, 103), (2 * 10**9, 200)):
        append_sample(path, at_ns, ticks)
    path.open("a").write('{"monotonic_ns": "x"}\n')
    attempt.read_new()
    assert [use["host"] for use in attempt.hosts] == [1.0, 1.0]


def test_viewer_receives_each_sample_once(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results/a/1", make_run({"a": scatter(1000)}))
    directory = folder.path / "trials/a-9.part"
    write_attempt(directory)
    (directory / "begun.json").write_text("{}")
    for second in range(4):
        write_sample(directory / "observed.jsonl", second)
    with serve(tmp_path) as server:
        received = (
            json.loads(event.partition("data: ")[2])
            for event in server.events("/run/a/1/events", 1_000)
            if event.startswith("event: points")
        )
        first = next(received)
        write_sample(directory / "observed.jsonl", 4)
        with (directory / "run.events.jsonl").open("a") as file:
            file.write(json.dumps(interval(3, [])) + "\n")
        second = next(received)
    assert (first["first"], len(first["hosts"])) == (0, 3)
    assert (second["first"], len(second["hosts"])) == (3, 1)
    assert [point["k"] for point in second["points"]] == [3]
    assert second["hosts"][0]["host"] == 1.0


def test_viewers_share_the_text_of_points(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", make_run({"a": scatter(1000)}))
    directory = begin_attempt(folder, "x", "x", 3)
    watcher = Watcher(folder)
    reading = watcher.read_run()
    text = watcher.points_since(reading, 0, 0)
    assert watcher.points_since(reading, 0, 0) is text
    assert [point["k"] for point in json.loads(text.partition("data: ")[2])["points"]] == [0, 1, 2]
    with (directory / "run.events.jsonl").open("a") as file:
        file.write(json.dumps(interval(3, [], earlier=[earlier(1, [outcome("READ", "OK", [1_000_000])])])) + "\n")
    watcher.run.read_new()
    text = watcher.points_since(replace(reading, changes=5), reading.changes, 0)
    assert [point["k"] for point in json.loads(text.partition("data: ")[2])["points"]] == [1, 3]


def test_processor_time_of_servers_is_shown() -> None:
    def sample(seconds: int, **ticks: int) -> dict[str, Any]:
        processes = {name: {"pid": 7, "cpu_ticks": count} for name, count in ticks.items()}
        host = {"cpu": [300 * seconds, 0, 0, 0, 0, 0, 0, 0]}
        times = {"monotonic_ns": seconds * 10**9, "unix_ns": seconds * 10**9, "ticks_per_second": 100}
        return {**times, "processors": host, "processes": processes, "memory": {}}

    use = measure_use(
        sample(0, engine=0, **{"server.redis-1": 0, "server.redis-2": 0}),
        sample(2, engine=100, **{"server.redis-1": 200, "server.redis-2": 50}),
    )
    assert (use["host"], use["engine"], use["servers"]) == (3.0, 0.5, 1.25)


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path, tail = tmp_path / "x", Tail(tmp_path / "x")
    assert [*tail.read_new()] == []
    path.write_text('{"a": 1}\n{"b"')
    assert [*tail.read_new()] == [{"a": 1}]
    with path.open("a") as file:
        file.write(': 2}\nnot json\n[]\n{"c": 3}\n')
    assert [*tail.read_new()] == [{"b": 2}, {"c": 3}]
    path.write_text('{"d": 4}\n')
    assert [*tail.read_new()] == [{"d": 4}]


def test_lock_is_seen_and_never_taken(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", make_run({"a": scatter(1000)}))
    assert not is_locked(folder.path)
    with folder.hold_lock():
        assert is_locked(folder.path)
        with (folder.path / "lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not is_locked(folder.path)


def test_catalogue_follows_changed_folders(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results" / "a" / "1", make_run({"a": scatter(1000)}))
    catalogue = ResultCatalogue(tmp_path / "results")
    assert [row["running"] for row in catalogue.list_rows()] == [False]
    # A search needs the systems and the metrics before the results are judged.
    assert [(row["verdict"], row["systems"], row["metrics"]) for row in catalogue.list_rows()] == [
        ("", "a", "throughput, read.p99")
    ]
    with folder.hold_lock():
        assert [row["running"] for row in catalogue.list_rows()] == [True]
    header = folder.path / "folder.json"
    document = json.loads(header.read_text())
    document["question"]["text"] = "A changed question?"
    header.write_text(json.dumps(document))
    assert [row["question"] for row in catalogue.list_rows()] == ["A changed question?"]
    header.write_text("{")
    assert [row["verdict"] for row in catalogue.list_rows()] == ["unreadable"]
    shutil.rmtree(folder.path)
    assert catalogue.list_rows() == []


def test_viewer_receives_only_changed_trials(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000), "b": scatter(900)})
    folder = write_folder(tmp_path / "a", replace(results, trials=results.trials[:-1]))
    watcher = Watcher(folder)
    watcher.read_run()
    text, position = watcher.plan_since(0)
    document = json.loads(text)
    assert (document["whole"], len(document["rows"])) == (True, 11)
    assert "variants" not in watcher.run.page_state()
    assert watcher.plan_since(position) == ("", position)
    last = results.trials[-1]
    folder.append_trial(last)
    watcher.run.read_new()
    watcher.run.page_state()
    document = json.loads(watcher.plan_since(position)[0])
    assert (document["whole"], [row["trial"] for row in document["rows"]]) == (False, [last.trial])
    assert document["rows"][0]["value"] == pytest.approx(last.value("throughput"))
    assert json.loads(watcher.plan_since(0)[0])["rows"][-1] == document["rows"][0]


def test_plan_shows_the_deciding_metric_after_failures(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    question = replace(results.question, metrics=("read.p99",))
    first, *later_trials = results.trials
    failed = replace(first, values={"throughput": first.values["throughput"]}, end="failed")
    run = FollowedRun(write_folder(tmp_path / "a", replace(results, question=question, trials=[failed, *later_trials])))
    run.read_new()
    assert (run.metric, run.page_state()["failed"]) == ("read.p99", 1)
    values = [row["value"] for row in run.rows.values()]
    assert values == [None, *(trial.value("read.p99") for trial in later_trials)]
    assert run.rows[first.trial]["worst"] == "invalid"


def test_run_follows_a_growing_folder(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    folder = write_folder(tmp_path / "a", replace(results, trials=results.trials[:2]))
    run = FollowedRun(folder)
    run.read_new()
    with folder.hold_lock(), folder.open_attempt("a-3", start=results.trials[2]):
        folder.record_block(3, {"a-3": {"system": "a"}})
        run.read_new()
        state = run.page_state()
        assert (state["done"], state["planned"], state["trial"]["phase"]) == (2, 6, "prepare")
        assert [row["state"] for row in run.rows.values()] == ["done"] * 2 + ["running"]
        assert state["least"] == 6
    folder.append_trial(results.trials[2])
    run.read_new()
    assert (run.page_state()["done"], run.page_state()["trial"]["phase"]) == (3, "done")


def begin_attempt(folder: Folder, name: str, trial: str, intervals: int) -> Path:
    """The directory of an attempt in progress."""
    directory = folder.path / f"trials/{name}.part"
    write_attempt(directory, intervals)
    (directory / "begun.json").write_text(json.dumps({"line": {"trial": trial, "config": {"system": "a"}}}))
    return directory


def test_last_lines_of_an_ended_trial_count(tmp_path: Path) -> None:
    run = FollowedRun(write_folder(tmp_path / "a", make_run({"a": scatter(1000)})))
    directory = begin_attempt(run.folder, "x", "x", 2)
    run.read_new()
    first = run.current
    assert first is not None
    with (directory / "run.events.jsonl").open("a") as file:
        file.write(json.dumps(interval(2, [outcome("READ", "OK", [1_000_000] * 7)])) + "\n")
    directory.rename(directory.with_suffix(""))
    begin_attempt(run.folder, "y", "y", 1)
    run.read_new()
    assert run.current is not None
    assert run.current.trial == "y"
    assert [point["k"] for point in first.list_points()] == [0, 1, 2]
    assert first.steps["run"].counts["READ", "OK"] == 2 * 3 + 7


def test_ended_trial_stays_until_its_line_arrives(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    run = FollowedRun(write_folder(tmp_path / "a", replace(results, trials=results.trials[:2])))
    last = results.trials[2]
    directory = begin_attempt(run.folder, last.trial, last.trial, 2)
    run.read_new()
    directory.rename(directory.with_suffix(""))
    run.read_new()
    ended = run.current
    assert ended is not None
    assert (ended.trial, len(ended.list_points())) == (last.trial, 2)
    run.folder.append_trial(last)
    run.read_new()
    assert run.current is ended


def test_further_attempt_begins_without_points(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results/a/1", make_run({"a": scatter(1000)}))
    directory = begin_attempt(folder, "x", "x", 3)
    with serve(tmp_path) as server:
        received = server.events("/run/a/1/events", 1_000)
        first = next(event for event in received if event.startswith("event: points"))
        directory.rename(directory.with_suffix(""))
        begin_attempt(folder, "x.2", "x", 1)
        begin = next(event for event in received if event.startswith("event: begin"))
        second = next(event for event in received if event.startswith("event: points"))
    assert len(json.loads(first.partition("data: ")[2])["points"]) == 3
    assert json.loads(begin.partition("data: ")[2]) == {"trial": "x"}
    assert [point["k"] for point in json.loads(second.partition("data: ")[2])["points"]] == [0]


def test_running_trial_delays_checks_of_finished_trials(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000, n=CHECKED_RUNNING + 2)})
    noted = [replace(trial, end="failed") for trial in results.trials]
    run = FollowedRun(write_folder(tmp_path / "a", replace(results, trials=noted)))
    with run.folder.hold_lock():
        run.read_new()
        assert run.page_state()["checked"] == CHECKED_RUNNING
        assert run.page_state()["findings"][0]["trial"] == noted[-1].trial
        run.read_new()
        assert run.page_state()["checked"] == len(noted)


def test_further_attempt_replaces_findings(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    first, *later_trials = results.trials
    failed = replace(first, end="failed")
    run = FollowedRun(write_folder(tmp_path / "a", replace(results, trials=[failed, *later_trials])))
    run.read_new()
    assert run.rows[first.trial]["worst"] == "invalid"
    run.folder.append_trial(replace(first, attempt=2))
    run.read_new()
    assert run.rows[first.trial]["worst"] == run.rows[later_trials[0].trial]["worst"]
    assert [finding["check"] for finding in run.page_state()["findings"]].count("failed") == 0
    assert (run.page_state()["done"], run.page_state()["failed"]) == (6, 0)


def test_remaining_time_decreases_during_a_trial(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    trials = [replace(trial, start_unix_ns=10**18 + at * 10**10) for at, trial in enumerate(results.trials[:3])]
    run = FollowedRun(write_folder(tmp_path / "a", replace(results, trials=trials)))
    run.read_new()
    last = trials[-1].start_unix_ns or 0
    assert [run.estimate_seconds_left(last + seconds * 10**9) for seconds in (10, 14, 20, 99)] == [30, 26, 20, 20]


def test_forecast_precedes_the_pace_of_trials(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    start = 10**18
    first = replace(results.trials[0], start_unix_ns=start)
    forecast = {"trials": 2, "trial_seconds": 20.0}
    question = Question("?", at_least=2)
    folder = Folder.create_folder(tmp_path / "a", "a", question, interleaved=True, forecast=forecast)
    run = FollowedRun(folder)

    def seconds_left(second: int) -> float | None:
        run.read_new()
        return run.estimate_seconds_left(start + second * 10**9)

    assert (run.page_state()["planned"], seconds_left(0)) == (2, 40)
    with folder.open_attempt(first.trial, start=first):
        assert [seconds_left(second) for second in (0, 15, 30)] == [40, 25, 30]
    folder.append_trial(first)
    assert seconds_left(30) == 10
    second = replace(results.trials[1], start_unix_ns=start + 30 * 10**9)
    with folder.open_attempt(second.trial, start=second):
        assert [seconds_left(second) for second in (30, 45, 99)] == [30, 15, 0]


def test_pause_before_resumption_is_ignored(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    starts = (0, 10, 900)
    trials = [
        replace(trial, start_unix_ns=10**18 + start * 10**9)
        for trial, start in zip(results.trials, starts, strict=False)
    ]
    folder = write_folder(tmp_path / "a", replace(results, trials=trials))
    with folder.hold_lock():
        os.utime(folder.path / "lock", (10**9 + 800, 10**9 + 800))
        run = FollowedRun(folder)
        run.read_new()
        assert run.estimate_seconds_left(10**18 + 910 * 10**9) == 30


def test_search_expects_trials_that_follow(tmp_path: Path) -> None:
    question = Question("?", find={"over": "clients"})
    folder = Folder.create_folder(tmp_path / "a", "a", question, interleaved=False)
    folder.record_block(1, {"x": {"clients": 1}}, expected=30)
    run = FollowedRun(folder)
    with folder.hold_lock():
        run.read_new()
        assert [run.page_state()[name] for name in ("planned", "rough")] == [30, True]
    assert [run.page_state()[name] for name in ("planned", "rough")] == [1, False]


@pytest.mark.parametrize("forecast", [[], {"trials": 10**400, "trial_seconds": "2"}, {"trial_seconds": float("inf")}])
def test_damaged_forecast_is_ignored(tmp_path: Path, forecast: Any) -> None:
    results = make_run({"a": scatter(1000, n=1)})
    folder = write_folder(tmp_path / "a", results)
    folder.header["forecast"] = forecast
    run = FollowedRun(folder)
    run.read_new()
    assert (run.count_planned(running=True), run.estimate_seconds_left(10**18)) == (6, None)


@pytest.mark.parametrize(
    ("plan", "attempt"),
    [
        ('{"trials": 3}', "[]"),
        ('{"trials": [{"trial": "x", "config": [1]}, 7]}', '{"line": [1]}'),
        ('{"trials": [{"trial": "x", "config": null}]}', '{"line": {"config": 3, "repeat": "two"}}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_damaged_plan_leaves_the_page_readable(tmp_path: Path, plan: str, attempt: str) -> None:
    results = make_run({"a": scatter(1000)})
    folder = write_folder(tmp_path / "a", results)
    with (folder.path / "plan.jsonl").open("a") as file:
        file.write(f"{plan}\n")
    directory = folder.path / "trials/a-9.part"
    directory.mkdir()
    (directory / "begun.json").write_text(attempt)
    (directory / "run.spec.json").write_text('{"until": 5}')
    (directory / "run.events.jsonl").touch()
    run = FollowedRun(folder)
    run.read_new()
    state = run.page_state()
    assert (state["done"], state["trial"]["name"]) == (6, "a-9")


def test_attempt_of_a_killed_lab_is_interrupted(tmp_path: Path) -> None:
    results = make_run({"a": scatter(1000)})
    folder = Folder.create_folder(tmp_path / "a", "a", results.question, interleaved=True)
    directory = tmp_path / "a/trials/a-1.part"
    directory.mkdir()
    (directory / "begun.json").write_text(json.dumps({"table": "values.jsonl", "line": results.trials[0].to_json()}))
    run = FollowedRun(folder)
    run.read_new()
    assert run.page_state()["trial"]["phase"] == "interrupted"
