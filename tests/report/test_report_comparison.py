"""The rows of the comparison for judged results: ratios, text in place of a ratio, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from imports_support import FIXTURES
from judge_support import REPEATS, Change, asking, set_figures, sound
from live_support import write_folder
from loadstone.api import Judgement
from loadstone.commands.show_results import judgement_document
from loadstone.format import wording
from loadstone.importers.read import read_file
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.report.charts.intervals import mark
from loadstone.report.charts.scaling import Line, measure
from loadstone.report.comparison import join_levels, table
from loadstone.report.history import draw_interval, trace
from loadstone.report.sections import comparison_section
from loadstone.report.table import TableCell
from loadstone.report.terminal.tables import change, figures
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult

# System a is the baseline, and b is a third faster.
FACTORS = {"a": 1.0, "b": 4 / 3}
AGAINST = 3


def make_view(points: Iterable[tuple[str, str]], question: Question, transform: Change) -> View:
    """Six repeats of each system on each workload, interleaved."""
    trials = [
        transform(
            replace(
                sound("lmdb", repeat, FACTORS[system] * (1 + 0.001 * repeat * (system == "b"))),
                trial=f"{system}-{workload}-{repeat}",
                config={"system": system, "workload": workload},
            )
        )
        for repeat in range(1, REPEATS + 1)
        for system, workload in points
    ]
    return View(
        judge_results(ResultSet("crafted", trials, replace(question, by="system", baseline="a"), interleaved=True))
    )


def column_cells(view: View, metric: str) -> dict[tuple[str, str], TableCell]:
    """The cells of the column next to the baseline, by workload and system."""
    groups = table(view, metric).groups
    return {(group.title, row[0].text): row[AGAINST] for group in groups for row in group.rows}


def entry_text(entry: TableCell) -> str:
    """The full text of a cell."""
    return f"{entry.text} {entry.note}".strip()


def test_a_context_without_the_baseline_is_marked() -> None:
    result = column_cells(make_view([("a", "A"), ("b", "A"), ("b", "B")], asking(), set_figures()), "throughput")
    assert {place: entry_text(entry) for place, entry in result.items() if place != ("workload A", "b")} == {
        ("workload A", "a"): "baseline",
        ("workload B", "b"): "– no baseline in this context",
    }
    assert result["workload A", "b"].tone == "better"


def test_baseline_with_a_withheld_figure_has_no_comparisons() -> None:
    def few(trial: TrialResult) -> TrialResult:
        here = trial.config == {"system": "a", "workload": "B"}
        return set_figures(n=999 if here else 100_000, read__p99__9=5e7 + trial.repeat)(trial)

    points = [(system, workload) for workload in "AB" for system in "ab"]
    result = column_cells(make_view(points, asking(metrics=("throughput", "read.p99.9")), few), "read.p99.9")
    assert entry_text(result["workload A", "a"]) == "baseline"
    assert entry_text(result["workload B", "b"]) == "– baseline withheld"
    assert "baseline" not in entry_text(result["workload A", "b"])


@pytest.mark.parametrize(("factor", "text"), [(1.0, "= 1.00× n=6"), (1 / 1.005, "≈ 0.5 % lower n=6")])
def test_irrelevant_ratio_has_few_digits(factor: float, text: str) -> None:
    def close(trial: TrialResult) -> TrialResult:
        # All repeats differ in their last digits.
        speed = (factor if trial.config["system"] == "b" else 1) * (
            1 + 1e-6 * (((3 if trial.config["system"] == "b" else 5) * trial.repeat) % 7)
        )
        return set_figures(throughput=1000 * speed, all__mean=9.8e6 / speed, read__mean=9.8e6 / speed)(trial)

    view = make_view([("a", "A"), ("b", "A")], asking(metrics=("throughput",)), close)
    (comparison,) = view.judgement.comparisons
    assert change(comparison).plain == text
    assert text.removesuffix(" n=6").partition(" ")[2] in column_cells(view, "throughput")["", "b"].note


@pytest.mark.parametrize(
    ("lower_ms", "median", "interval"),
    [(55.0, "at most 60.0 ms", "54.7 – 60.3 ms"), (59.99, "60.0 ms", "59.7 – 60.3 ms")],
)
def test_late_latency_is_an_upper_bound(tmp_path: Path, lower_ms: float, median: str, interval: str) -> None:
    def bound_latency(trial: TrialResult) -> TrialResult:
        off = (1 + 0.005 * (trial.repeat % 3 - 1)) * 1e6
        return replace(set_figures(read__p99=60 * off, read__lower__p99=lower_ms * off)(trial), loop="open")

    view = make_view([("a", "A"), ("b", "A")], asking(metrics=("read.p99",)), bound_latency)
    row = table(view, "read.p99").groups[0].rows[0]
    assert (row[1].text, row[2].text) == (median, interval)
    cells = [cell for (_, metric), cell in view.judgement.cells.items() if metric == "read.p99"]
    assert [text.partition(" (")[0] for text in figures(view.judgement, cells).values()] == [median] * 2
    # Every output has the table's interval.
    assert mark(view, cells[0])["interval"] == interval
    (point,) = measure(view, Line("a", (), {1: cells[0].variant}), "read.p99")
    (cell, _) = judgement_document(view.judgement)["cells"]
    row, _ = (row for row in Judgement(view.judgement).figures.to_pylist() if row["metric"] == "read.p99")
    history = trace([write_folder(tmp_path / "late/1", view.results)], ["read.p99"], "").series[0]
    past = history.entries[0].cell.estimate
    assert ("○" if median.startswith("at most") else "●") in draw_interval(history.entries[0], 0.0, 1e8)
    assert wording.interval_text(past, "ns") == interval
    assert {(output["low"], output["high"]) for output in (point, cell, row)} == {(past.low, past.high)}


def test_levels_of_one_method_share_a_note() -> None:
    notes = ["Test: too few repeats, n=3", "Intervals: 96.1 % of medians", "Intervals: 96.9 % of medians"]
    assert join_levels(notes) == ("Intervals: 96.1 or 96.9 % of medians", notes[0])


def test_refused_row_is_not_valid() -> None:
    def beyond(trial: TrialResult) -> TrialResult:
        return set_figures(read__bandwidth=2e9)(trial) if trial.config["system"] == "b" else trial

    view = make_view([("a", "A"), ("b", "A")], asking(), beyond)
    rows = {row[0].text: row for row in table(view, "throughput").groups[0].rows}
    assert entry_text(rows["b"][AGAINST]) == "refused invalid: impossible"
    assert (rows["b"][-1].verdict, rows["b"][-1].note) == (Verdict.INVALID, "impossible")
    assert rows["a"][-1].verdict == Verdict.VALID
    # A test on which no claim relies has no p.
    assert "p=" not in entry_text(rows["b"][AGAINST + 1])


@pytest.mark.parametrize(
    ("name", "metric", "note"),
    [
        ("TestDFSIO_results.log", "write.bandwidth", "Throughput 31.9 mb/sec (2^20)"),
        ("TestDFSIO_results.log", "write.io_rate", "Average IO rate 32.53 mb/sec (2^20)"),
        ("fio-two-jobs.json", "write.bandwidth", "bw 275.86 MiB/s (2^20)"),
        ("fio-2.15.json", "read.bandwidth", "bw 149.82 MiB/s (2^20), job t2"),
        ("sysbench-1.1-fileio.txt", "read.bandwidth", "Throughput 9.38 MiB/s"),
    ],
)
def test_imported_bandwidth_keeps_its_unit(name: str, metric: str, note: str) -> None:
    trials = [run.result for run in read_file(FIXTURES / name, {})]
    view = View(judge_results(ResultSet("imported", trials)))
    notes = [row[1].note for group in table(view, metric).groups for row in group.rows if row]
    assert note in notes


@pytest.mark.parametrize(("name", "is_folded"), [("sysbench-1.1-fileio.txt", False), ("fio-2.15.json", True)])
def test_single_run_shows_every_figure(name: str, is_folded: bool) -> None:
    trial = next(run.result for run in read_file(FIXTURES / name, {}))
    section = comparison_section(View(judge_results(ResultSet("imported", [trial]))))
    assert bool(section.more) == is_folded
    rows = [row for part in (*section.tables, *section.more) for group in part.groups for row in group.rows]
    assert {row[0].text for row in rows} >= {wording.metric_name(metric) for metric in trial.values}
    assert len(rows) == len(trial.values)


@pytest.mark.parametrize(("system", "beside"), [("a", "– baseline failed"), ("b", "baseline")])
def test_failed_side_has_a_row(system: str, beside: str) -> None:
    def fail(trial: TrialResult) -> TrialResult:
        return replace(trial, end="failed", values={}) if trial.config == {"system": system, "workload": "B"} else trial

    view = make_view([("a", "A"), ("b", "A"), ("a", "B"), ("b", "B")], asking(), fail)
    (group,) = [group for group in table(view, "throughput").groups if group.title == "workload B"]
    rows = {row[0].text: [entry_text(entry) for entry in row] for row in group.rows}
    (other,) = {"a", "b"} - {system}
    assert rows[system][1] == f"failed all {REPEATS} repeats"
    assert rows[other][AGAINST] == beside
