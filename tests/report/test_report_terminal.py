"""Results on a terminal: a curve of percentiles, prose of the terminal's width, and no escapes with NO_COLOR."""

from __future__ import annotations

import io
import json
import math
import re

import pytest
from rich.console import Console

import report_support
from conftest import FIXTURES
from judge_support import experiment, set_figures
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report.terminal import standard_output, tables
from loadstone.report.terminal.curve import draw_plot
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult


def print_results(console: Console) -> str:
    """The usual results as printed on a console."""
    return print_judgement(console, judge_results(report_support.usual().results))


def print_judgement(console: Console, judgement: Judgement) -> str:
    """A judgement as printed on a console."""
    tables.show(console, judgement, project_results(judgement.results, Projection()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_terminal_shows_curve_and_pipe_does_not() -> None:
    title = "read: latency by percentile · workload a"
    assert title in print_results(Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None))
    assert title not in print_results(Console(file=io.StringIO(), width=100))


def test_curve_rises_to_its_highest_percentile() -> None:
    curves = {"slow": [(0.3, 2e6), (2.0, 20e6), (3.0, 200e6)], "fast": [(0.3, 1e6), (2.0, 1e6), (3.0, 1e6)]}
    *plot, axis, labels, names = draw_plot(curves, 80)
    assert (plot[0].split()[0], plot[-1].split()[0]) == ("200", "1.00")
    assert plot[0].rstrip().endswith("●")
    # The curve of the fast system is flat.
    assert plot[-1].count("○") == plot[-1].rstrip().rindex("○") - plot[-1].index("○") + 1
    columns = {mark: labels.index(mark) for mark in ("p50", "p90", "p99")}
    # Each further nine takes the same width.
    assert math.isclose(columns["p99"] - columns["p90"], (columns["p90"] - columns["p50"]) / 0.7, abs_tol=2)
    assert axis.startswith(" ")
    # A label at the right edge would be wrapped.
    assert labels.endswith("p99.9")
    assert max(map(len, [*plot, axis, labels])) <= 80
    assert names.split() == ["●", "slow", "○", "fast"]


@pytest.mark.parametrize("width", [60, 100])
def test_prose_wraps_at_the_width(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    lines = [line.rstrip() for line in print_results(console).splitlines()]
    prose = lines[: lines.index("throughput")]
    assert len(prose) > 3
    assert max(map(len, prose)) <= width


def test_narrow_terminal_cuts_no_figure() -> None:
    assert "…" not in print_results(Console(file=io.StringIO(), width=40, force_terminal=True, color_system=None))


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("kind", ["faults", "cassandra-stress", "sort"])
def test_narrow_terminal_splits_no_figure(kind: str, width: int) -> None:
    _, *rows = map(json.loads, (FIXTURES / "kinds" / f"{kind}.jsonl").read_text().splitlines())
    judgement = judge_results(ResultSet(kind, [TrialResult.from_json(row) for row in rows]))
    wide, narrow = (
        print_judgement(Console(file=io.StringIO(), width=columns, color_system=None), judgement)
        for columns in (1000, width)
    )
    figures = {word.strip("(),") for word in wide.split() if re.search(r"\d", word)}
    assert len(figures) > 10
    assert figures <= {word.strip("(),") for word in narrow.split()}


def test_few_repeats_have_three_digits() -> None:
    def scale(trial: TrialResult) -> TrialResult:
        return set_figures(read__p99=1.663e6 if trial.config["system"] == "lmdb" else 154.927e6)(trial)

    question = Question(metrics=("read.p99",))
    judgement = judge_results(experiment(scale, repeats=2, question=question))
    text = print_judgement(Console(file=io.StringIO(), width=100, color_system=None), judgement)
    assert "1.66 ms" in text
    assert "155 ms" in text


def test_no_color_writes_no_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    def bold() -> str:
        console = standard_output()
        with console.capture() as capture:
            console.print("text", style="bold red")
        return capture.get()

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in bold()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in bold()
