"""History over all results of one question, and damaged, incomplete, newer or foreign folders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import loadstone
from lab_support import loadstone as command
from loadstone.commands.history import main as history
from loadstone.judge.judgement import Cell
from loadstone.report.history import HistoryPoint, draw_interval
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question
from loadstone.statistics.estimate import Estimate
from results_support import trial

QUESTION = "Is | release 2 faster?"
HOST: dict[str, Any] = {"cpu_model": "EPYC", "cpus": 2, "kernel": "6.1"}


def write_run(
    root: Path, time: str, version: str, commit: str, rates: list[float], question: str = QUESTION, **host: Any
) -> Folder:
    """A run of one variant."""
    environment = {"hosts": [{"name": "localhost"}], "git": {"commit": commit * 20, "dirty": commit == "b"}}
    recorded = Question(text=question, by="system")
    folder = Folder.create_folder(
        root / f"releases/{time}", "releases", recorded, interleaved=True, environment=environment
    )
    for number, rate in enumerate(rates, 1):
        facts = {**HOST, "version": version, **host}
        folder.append_trial(trial(f"r{number}", {"system": "a"}, rate, number, facts=facts, order=number))
    # An interrupted attempt never counts.
    folder.append_trial(trial("r1", {"system": "a"}, 9e9, 1, facts=HOST, order=1, attempt=2, end="interrupted"))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two versions on one host, one version on another host, and another question."""
    results = tmp_path / "results"
    write_run(results, "2026-01-03", "v10", "a", [100, 101, 102, 103, 104, 105])
    write_run(results, "2026-01-02", "v9", "b", [90, 91, 92, 93, 94, 95])
    write_run(results, "2026-01-01", "v10", "c", [50, 51], cpus=64)
    other = Folder.create_folder(results / "other/2026-01-01", "other", Question(text="Is it large?"), interleaved=True)
    other.append_trial(trial("x", {"system": "a"}, 7.0))
    return tmp_path


def test_question_may_be_a_folder(home: Path) -> None:
    named = command(home, "history", "releases").stdout
    for folder in ("results/releases", "./results/releases/", "results/releases/2026-01-03"):
        assert command(home, "history", folder).stdout == named


def test_history_shows_versions_and_hosts(home: Path) -> None:
    output = command(home, "history", "releases", "--metric", "throughput").stdout
    rows = [line.split() for line in output.splitlines() if re.match(r" [AB] ", line)]
    assert [[row[0], *row[2:5]] for row in rows] == [
        ["A", "v10", "ccccccccc", "releases/2026-01-01"],
        ["B", "v9", "bbbbbbbbb+", "releases/2026-01-02"],
        ["B", "v10", "aaaaaaaaa", "releases/2026-01-03"],
    ], "by host, then by version as numbers"
    assert [row[5] for row in rows] == ["2", "6", "6"], "interrupted attempts do not count"
    assert "cpus 64" in output
    intervals = [line.count("├") for line in output.splitlines() if re.match(r" [AB] ", line)]
    assert intervals == [0, 1, 1], "two repeats have no interval"


def test_history_orders_imports_by_their_start(tmp_path: Path) -> None:
    for commit, start in (("new", "2026-02-02T02:00:00Z"), ("old", "2026-01-01T02:00:00Z")):
        row = f"v,1,1,throughput,op/s,{len(commit)}{ord(commit[0])}"
        (tmp_path / "log.csv").write_text(f"variant,repeat,clients,metric,unit,value\n{row}\n")
        facts = ("--fact", f"commit={commit}", "--fact", f"start={start}")
        command(tmp_path, "import", "log.csv", "--question", "nightly", *facts)
    output = command(tmp_path, "history", "nightly").stdout
    rows = [line.split() for line in output.splitlines() if line.startswith(" A ")]
    assert [row[:4] for row in rows] == [["A", "A", "unknown", "old"], ["A", "A", "unknown", "new"]]


def test_narrow_terminal_hides_no_history(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert history(["releases", "--results", str(home / "results")]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "version v9, commit bbbbbbbbb+, run releases/2026-01-02, n 6, figure" in output


def test_history_figures_equal_the_reports(home: Path) -> None:
    output = command(home, "history", "release 2", "--metric", "throughput", "--markdown").stdout
    rows = [line.split(" | ") for line in output.splitlines() if line.startswith("| B")]
    run = loadstone.open(home / "results/releases/2026-01-03")
    (cell,) = [row for row in run.judgement.figures.to_pylist() if row["metric"] == "throughput"]
    assert (cell["value"], cell["low"], cell["high"]) == (102.5, 100, 105)
    assert rows[1][6:8] == ["102 op/s", "100 – 105 op/s"]
    report = command(home, "show", "results/releases/2026-01-03").stdout
    assert "102 op/s" in report
    assert "# Is \\| release 2 faster?" in output


def test_history_distinguishes_runs_with_other_settings(home: Path) -> None:
    write_run(home / "results", "2026-01-04", "v10", "a", [400, 401], records=1_000, durability="none")
    for form in ((), ("--markdown",)):
        output = command(home, "history", "releases", "--metric", "throughput", *form).stdout.replace("\\", "")
        assert "settings B: number of records 1,000, durability none" in output
        rows = [[cell.strip() for cell in re.split(r"\|| ", line) if cell.strip()] for line in output.splitlines()]
        assert [row[1] for row in rows if len(row) > 5 and row[4].startswith("releases/")] == ["A", "A", "A", "B"]
    shutil.rmtree(home / "results/releases/2026-01-04")
    assert "settings A:" not in command(home, "history", "releases").stdout


def test_history_selects_one_question(home: Path) -> None:
    assert "7.00 op/s" in command(home, "history", "LARGE", "--metric", "throughput").stdout
    done = command(home, "history", "is", code=1)
    assert '2 questions contain "is"' in done.stderr
    assert "did you mean releases?" in command(home, "history", "relaeses", code=1).stderr
    assert "no results for the question" in command(home, "history", "absent", code=1).stderr


def test_unreadable_folders_get_one_line_each(home: Path) -> None:
    results = home / "results"
    damaged: dict[str, str] = {
        "damaged": '{"results": 2, "question"',
        "newer": '{"results": 99}',
        "deep": "[" * 100_000,
        "foreign": '{"something": "else"}',
        "question": '{"results": 2, "name": "q", "question": {"at_least": "many"}}',
    }
    for name, text in damaged.items():
        (results / name / "now").mkdir(parents=True)
        (results / name / "now/folder.json").write_text(text)
    # The lab ended while it created the folder.
    (results / "half/now/trials").mkdir(parents=True)
    (results / "half/now/environment.json").write_text("{}")
    (results / "notes/now").mkdir(parents=True)
    (results / "table/now/values.jsonl").mkdir(parents=True)
    (results / "table/now/folder.json").write_text(json.dumps({"results": 2, "name": "table"}))
    for arguments in (("list",), ("history", "releases")):
        done = command(home, *arguments)
        lines = [line for line in done.stderr.splitlines() if line.startswith("omitted: ")]
        named = {name: sum(f"results/{name}/now" in line for line in lines) for name in (*damaged, "half")}
        assert set(named.values()) == {1}, (arguments, lines)
        assert "releases" in done.stdout
    assert "results/table/now" in command(home, "list").stderr
    done = command(home, "show", "results/newer/now", code=1)
    assert "has results of version 99" in done.stderr


def test_damaged_parts_leave_figures_readable(home: Path) -> None:
    path = home / "results/releases/2026-01-03"
    (path / "environment.json").write_bytes(b"\xff{")
    (path / "pilot.json").write_text("[" * 100_000)
    (path / "experiment.yaml").mkdir()
    (path / "plan.jsonl").write_bytes(b'\0\0\n{}\n{"block": 1e999, "trials": []}\n')
    run = loadstone.open(path)
    assert len(run.trials) == 6
    files = sorted(warning.split()[0] for warning in run.warnings)
    assert files == ["environment.json", "experiment.yaml", "pilot.json"]
    assert "102 op/s" in command(home, "show", path).stdout


@pytest.mark.parametrize(
    ("value", "low", "high", "withheld", "is_bound", "drawing"),
    [
        (5.0, 0.0, 10.0, "", False, "├────●────┤"),
        (5.0, 0.0, 10.0, "", True, "├────○────┤"),
        (5.0, None, None, "", False, "     ●"),
        (0.0, 0.0, 0.0, "", False, "●"),
        (float("inf"), None, None, "", False, ""),
        (5.0, 0.0, 10.0, "too few", False, ""),
    ],
)
def test_intervals_are_drawn_to_scale(
    value: float, low: float | None, high: float | None, withheld: str, is_bound: bool, drawing: str
) -> None:
    cell = Cell((), "throughput", "op/s", Estimate(value, 6, low, high, 0.95), (), withheld)
    point = HistoryPoint("", "", "", "", {}, "", cell, "", "", is_bound)
    assert draw_interval(point, 0.0, 10.0, 11) == drawing
