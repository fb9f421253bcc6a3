"""The live server refuses invalid requests, tolerates damaged folders, and serves metrics."""

from __future__ import annotations

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

import pytest

from lab_support import experiment, loadstone
from live_support import Server, parse_families, serve, tear_line, write_folder
from loadstone.commands import run
from loadstone.live.server import has_report
from loadstone.results import archive
from loadstone.results.folder import list_paths
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
    # Older browsers send only the origin; it is "null" in an isolated frame.
    assert [server.get("/runs.json", Origin=origin)[0] for origin in ("http://evil.example", "null")] == [403, 403]
    assert server.get("/runs.json", Origin=f"http://{server.host}")[0] == 200


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
