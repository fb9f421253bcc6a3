"""The live server: refusals, damaged folders, and metrics."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from event_support import earlier, interval, outcome
from lab_support import experiment, loadstone
from live_support import Server, serve, tear_line, write_folder
from loadstone.commands import run
from loadstone.engine.histogram import Histogram
from loadstone.live.catalogue import ResultCatalogue
from loadstone.live.metrics import BUCKETS, classic_histogram, labels_of, render_metrics
from loadstone.live.run import CHECKED_RUNNING, FollowedRun, is_locked
from loadstone.live.server import Watcher, has_report
from loadstone.live.tail import Tail
from loadstone.live.trial import Attempt, measure_use
from loadstone.results import archive
from loadstone.results.fault import FaultRecord
from loadstone.results.folder import Folder, list_paths
from loadstone.runner.trial import append_fault
from test_expectations import make_run, scatter

HOSTILE = '"><script>alert(1)</script>'
CLIMBING = (
    "/run/../../../../etc/passwd",
    "/run/%2e%2e/%2e%2e/report",
    "/run/..%2f..%2f..%2f..%2fetc/passwd/report",
    "/static/..%2fserver.py",
    "/static/../server.py",
    "/compare?run=../../etc&run=a/1",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results: two sound folders, a hostile folder, and a folder for each type of damage."""
    home = tmp_path_factory.mktemp("live")
    (home / "secret.txt").write_text("root:x:0")
    results = make_run({"old": scatter(1000), "new": scatter(900, seed=2)}, "throughput >= 0.95x")
    for name in ("a", "b"):
        write_folder(home / "results" / name / "1", results)
    question = replace(results.question, text=HOSTILE)
    write_folder(home / "results" / "hostile" / "1", replace(results, name=HOSTILE, question=question))
    torn = write_folder(home / "results" / "torn" / "1", results)
    tear_line(torn.path / "values.jsonl")
    shutil.copytree(home / "results" / "a", home / "results" / os.fsdecode(b"caf\xe9"))
    surrogate = write_folder(home / "results" / "surrogate" / "1", results).path / "folder.json"
    surrogate.write_text(surrogate.read_text().replace('"name": "', '"name": "\\ud800'))
    os.mkfifo(write_folder(home / "results" / "pipe" / "1", results).path / "trials.jsonl")
    headers = {"foreign": "[]", "newer": '{"results": 99}', "half": '{"results": 2, "na', "odd": '{"results": 2}'}
    for name, header in headers.items():
        (home / "results" / name / "1").mkdir(parents=True)
        (home / "results" / name / "1" / "folder.json").write_text(header)
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    """The server of these results."""
    with serve(home, "--metrics-port", "0") as server:
        yield server


def parse_families(text: str) -> dict[str, Any]:
    """The metric families by name, parsed by Prometheus's own parser."""
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]


def test_wrong_token_is_refused(server: Server) -> None:
    assert server.get("/", token=False)[0] == 403
    assert server.get("/?token=wrong", token=False)[0] == 403
    assert server.get("/runs.json", token=False, Cookie=server.cookie[:-1])[0] == 403
    status, headers, _ = server.get(f"/?token={server.token}", token=False)
    assert status == 303
    assert all(word in headers["set-cookie"].lower() for word in ("httponly", "samesite=strict"))
    assert server.get("/")[0] == 200


@pytest.mark.parametrize("path", CLIMBING)
def test_path_that_climbs_out_is_refused(server: Server, path: str) -> None:
    status, _, text = server.get(path)
    assert status in (400, 404)
    assert "root:" not in text
    assert "import" not in text


def test_wildcard_address_is_reachable_by_address(home: Path) -> None:
    with serve(home, "--host", "0.0.0.0") as server:
        port = server.host.rpartition(":")[2]
        # 127.0.0.2 represents an address of this host in the network.
        for name, status in ((f"127.0.0.2:{port}", 200), ("evil.example", 400), (f"evil.example:{port}", 400)):
            assert server.get("/", host=f"127.0.0.1:{port}", Host=name)[0] == status
        assert server.get("/", host=f"127.0.0.1:{port}", Host=f"127.0.0.2:{port}", token=False)[0] == 403


def test_unusable_port_gets_one_line(home: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        path = experiment(home, "systems: [lmdb]\nworkload: {properties: {recordcount: 10}}\n")
        for arguments in (["--metrics-port", port], ["--live", "--live-port", "99999"]):
            for more in ([], ["--dry-run"]):
                done = loadstone(home, "run", path, *arguments, *more, code=1)
                assert re.fullmatch(r"error: .*\bport.*\nhint: .*\n", done.stderr)
        assert not (home / "results" / path.stem).exists()
    done = loadstone(home, "serve", "results", "--port", "99999", code=1)
    assert done.stderr.startswith("error: cannot listen on 127.0.0.1:99999: ports are 0 to 65535\nhint: ")


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_missing_package_is_reported_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    path = experiment(tmp_path, "systems: [lmdb]\nworkload: {properties: {recordcount: 10}}\n")
    assert run.main([str(path), "--live", "--results", str(tmp_path / "results"), *more]) == 1
    assert "error: the live page and the metrics need the package uvicorn\n" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_archive_is_served_as_a_folder(home: Path, tmp_path: Path) -> None:
    loadstone(home, "export", "results/a/1", "--output", tmp_path / "a.zip")
    with serve(home, root=str(tmp_path / "a.zip")) as server:
        (row,) = json.loads(server.get("/runs.json")[2])
        assert row["id"] == "a/1"
        assert server.get("/run/a/1/report")[0] == 200


@pytest.mark.parametrize("start", ["results/a/1", "results/a", "results"])
def test_archive_serves_nothing_outside_itself(home: Path, tmp_path: Path, start: str) -> None:
    target = tmp_path / "made.zip"
    with zipfile.ZipFile(target, "w") as bundle:
        for path in (home / "results/a/1").iterdir():
            if path.is_file():
                bundle.write(path, path.relative_to(home / start))
    assert archive.is_archive(target)
    folder = archive.unpack_archive(target)
    assert [path.resolve() for path in list_paths(folder.path.parents[1])] == [folder.path.resolve()]


def test_single_result_is_not_served_as_results(home: Path) -> None:
    for path in ("results/a/1", "results/a"):
        done = loadstone(home, "serve", path, code=1)
        error, hint = done.stderr.splitlines()
        assert error == f"error: {path} is one result, not a directory of results"
        assert hint.startswith("hint: `loadstone serve results`")


def test_linked_report_is_not_followed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results/a/1", make_run({"a": scatter(1000)}))
    (tmp_path / "secret.txt").write_text("TOPSECRET")
    (folder.path / "report.html").symlink_to(tmp_path / "secret.txt")
    assert not has_report(folder)
    assert folder.path / "report.html" not in [*archive.list_files(folder)]


def test_cross_site_request_is_refused(server: Server) -> None:
    assert server.get("/runs.json", Sec_Fetch_Site="cross-site")[0] == 403
    assert server.get("/runs.json", Sec_Fetch_Site="same-site")[0] == 403
    assert server.get("/runs.json", Sec_Fetch_Site="same-origin")[0] == 200
    assert server.get("/runs.json", Host="evil.example")[0] == 400
    assert "access-control-allow-origin" not in server.get("/runs.json", Origin="http://evil.example")[1]


def test_nothing_can_be_changed(server: Server) -> None:
    assert {server.get("/runs.json", method=method)[0] for method in ("POST", "PUT", "DELETE")} == {405}


def test_hostile_names_are_escaped(server: Server) -> None:
    for path in ("/", "/run/hostile/1"):
        _, headers, text = server.get(path)
        assert "<script>alert" not in text
        assert "script-src 'self'" in headers["content-security-policy"]


def test_report_is_isolated_from_the_page(server: Server, home: Path) -> None:
    path = home / "results/b/1/report.html"
    path.write_text("<script>fetch('/runs.json')</script>")
    _, headers, text = server.get("/run/b/1/report")
    path.unlink()
    assert "fetch" in text
    assert headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in headers["content-security-policy"]


def test_damaged_folders_leave_the_others_alone(server: Server) -> None:
    rows = json.loads(server.get("/runs.json")[2])
    readable = {row["id"] for row in rows if row["verdict"] != "unreadable"}
    assert readable == {"a/1", "b/1", "hostile/1", "torn/1", "odd/1"}
    reasons = {row["id"]: row["question"] for row in rows if row["verdict"] == "unreadable"}
    assert "reads versions 1 to" in reasons["newer/1"]
    assert "cannot read" in reasons["half/1"]
    assert reasons["pipe/1"].endswith("trials.jsonl is not a regular file")
    assert "surrogates not allowed" in reasons["surrogate/1"]
    assert reasons["caf\\xe9/1"].endswith("is not valid UTF-8")
    index = server.get("/")[2]
    assert "reads versions 1 to" in index
    assert 'href="/run/newer/1"' not in index
    for name in ("torn/1", "odd/1", "a/1"):
        assert server.get(f"/run/{name}")[0] == 200
        assert any(event.startswith("event: state") for event in server.events(f"/run/{name}/events", 3))


def test_first_events_contain_the_whole_state(server: Server) -> None:
    begin, plan, state = server.events("/run/a/1/events", 3)
    assert (begin.partition("\n")[0], plan.partition("\n")[0]) == ("event: begin", "event: plan")
    assert len(json.loads(plan.partition("data: ")[2])["rows"]) == 12
    document = json.loads(state.partition("data: ")[2])
    assert (document["planned"], document["done"], document["running"]) == (12, 12, False)
    assert document["expect"] == ["throughput >= 0.95x"]


def test_comparison_of_chosen_runs_is_a_report(server: Server) -> None:
    status, headers, text = server.get("/compare?run=a/1&run=b/1")
    assert (status, "<h1>" in text) == (200, True)
    assert headers["content-security-policy"].startswith("sandbox")
    assert server.get("/compare?run=a/1")[0] == 400


def test_metrics_port_has_metrics_alone(server: Server) -> None:
    assert server.process.stdout is not None
    address = server.process.stdout.readline().strip()
    host = address.removeprefix("http://").removesuffix("/metrics")
    status, headers, text = server.get("/metrics", host=host, token=False)
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert parse_families(text).keys() >= {"loadstone_trials", "loadstone_running"}
    assert server.get("/runs.json", host=host)[0] == 404
    assert server.get("/metrics")[0] == 404


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
    attempt.read_new()
    assert [*attempt.faults.values()] == [{"kind": "pause", "from": 2.1, "to": None}]
    append_fault(tmp_path / "faults.jsonl", 0, replace(record, held_ns=2_200_000_000, lifted_ns=4_500_000_000))
    (tmp_path / "faults.jsonl").open("a").write('{"fault": 2}\n{"fault": "x", "kind": 3}\n')
    attempt.read_new()
    assert [*attempt.faults.values()] == [{"kind": "pause", "from": 2.2, "to": 4.5}]


def write_sample(path: Path, second: int) -> None:
    """Appends a sample of a host with one processor in use."""
    busy = [100 * second, 0, 0, 100 * second, 0, 0, 0, 0]
    sample = {"unix_ns": second * 10**9, "monotonic_ns": second * 10**9, "ticks_per_second": 100}
    with path.open("a") as file:
        file.write(json.dumps({**sample, "processors": {"cpu": busy}, "processes": {}, "memory": {}}) + "\n")


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


@pytest.mark.parametrize(
    ("plan", "attempt"),
    [
        ('{"trials": 3}', "[]"),
        ('{"trials": [{"trial": "x", "config": [1]}, 7]}', '{"line": [1]}'),
        ('{"trials": [{"trial": "x", "config": null}]}', '{"line": {"config": 3, "repeat": "two"}}'),
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
