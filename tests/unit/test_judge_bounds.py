"""Figures that are bounds: comparison, display, search and storage."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from judge_support import REPEATS, Change, asking, both, experiment, rocksdb, set_figures
from loadstone.commands.show_results import judgement_document
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Comparison, Judgement
from loadstone.report.charts import intervals, percentiles
from loadstone.report.comparison import table
from loadstone.report.terminal import tables
from loadstone.report.trials import table as trials_table
from loadstone.report.view import View
from loadstone.results.export import write_csv
from loadstone.results.projection import Projection, project_results
from loadstone.results.trial_result import TrialResult
from loadstone.runner.run import line
from loadstone.statistics.percentile import Bound
from report_support import page, pull_request

P99 = "read.p99"


def set_bound(bound: Bound, *repeats: int, metric: str = P99) -> Change:
    """Turns rocksdb's figure into a bound, in these repeats or in all."""

    def change_trial(trial: TrialResult) -> TrialResult:
        if repeats and trial.repeat not in repeats:
            return trial
        return replace(trial, values={**trial.values, metric: replace(trial.values[metric], bound=bound)})

    return rocksdb(change_trial)


def judge_change(change: Change, *metrics: str, **question: Any) -> Judgement:
    """Judges an experiment with this change, by default with throughput and the p99 as metrics."""
    return judge_results(experiment(change, question=asking(metrics=metrics or ("throughput", P99), **question)))


def comparison(judgement: Judgement, metric: str) -> Comparison:
    """The only comparison by a metric."""
    (result,) = (comparison_of for comparison_of in judgement.comparisons if comparison_of.metric == metric)
    return result


CASES = [
    (set_bound("at_least"), "p99 of rocksdb is only a lower bound"),
    (set_bound("at_least", 2, 5), "p99 of rocksdb is only a lower bound in 2 of 6 repeats"),
    (set_bound("failed"), "p99 of rocksdb is unbounded, as too many operations failed"),
    (
        both(set_bound("at_least"), set_bound("failed", 3)),
        "p99 of rocksdb is unbounded, as too many operations failed in 1 of 6 repeats",
    ),
]


@pytest.mark.parametrize(("change", "why"), CASES)
def test_variant_with_a_bound_is_unranked_with_reason(change: Change, why: str) -> None:
    judgement = judge_change(change)
    result = comparison(judgement, P99)
    assert (result.claim, result.why, result.p, result.test) == ("unranked", why, None, "")
    assert result.ratio.value != result.ratio.value
    # Other metrics are still ranked, and their p values are not corrected for the unranked metric.
    other = comparison(judgement, "throughput")
    assert (other.claim, other.why) == ("better", "")
    assert other.p_adjusted == other.p


def test_a_bound_has_no_interval() -> None:
    cells = judge_change(set_bound("at_least", 1)).cells
    key = next(key for key in cells if key[1] == P99 and dict(key[0])["system"] == "rocksdb")
    assert (cells[key].bound, cells[key].bounded, cells[key].estimate.low) == ("at_least", 1, None)
    other = next(key for key in cells if key[1] == P99 and dict(key[0])["system"] == "lmdb")
    assert cells[other].bound is None
    assert cells[other].estimate.low is not None


def test_an_invalid_side_refuses_before_a_bound_does() -> None:
    result = comparison(judge_change(both(set_bound("failed"), rocksdb(set_figures(wrong=1)))), P99)
    assert result.claim == "refused"


def test_answer_gives_the_reason_for_missing_ranks() -> None:
    judgement = judge_change(set_bound("failed"), P99)
    assert (
        judgement.answer == "cannot rank lmdb and rocksdb: p99 of rocksdb is unbounded, as too many operations failed"
    )


def test_many_that_are_not_ranked_are_counted() -> None:
    def spread(trial: TrialResult) -> TrialResult:
        return set_bound("at_least")(replace(trial, config={**trial.config}))

    trials = [
        replace(entry, trial=f"{entry.trial}-{load}", config={**entry.config, "load": load})
        for entry in map(spread, experiment().trials)
        for load in range(5)
    ]
    result = experiment(trials=trials, question=asking(metrics=(P99,), by="system"))
    assert "not ranked, as operations failed or never completed in 5" in judge_results(result).answer


BOUND_TEXTS: list[tuple[Bound, str]] = [("at_least", "at least 30.0 ms"), ("failed", "failed")]


@pytest.mark.parametrize(("bound", "text"), BOUND_TEXTS)
def test_every_table_shows_what_is_known(bound: Bound, text: str) -> None:
    judgement = judge_change(set_bound(bound))
    view = View(judgement)
    rows = {row[0].text: row for group in table(view, P99).groups for row in group.rows}
    assert (rows["rocksdb"][1].text, rows["rocksdb"][1].note) == (text, "6 of 6 repeats")
    assert rows["rocksdb"][2].text == "none"
    assert (rows["lmdb"][3].text, rows["lmdb"][3].note[:15]) == ("not ranked", "p99 of rocksdb ")
    assert rows["lmdb"][1].text == "30.0 ms"
    every = [entry.text for group in trials_table(view).groups for row in group.rows for entry in row]
    assert every.count(text) == REPEATS
    for rendered in (page(judgement), pull_request(judgement)):
        assert text in rendered
        assert "not ranked" in rendered


@pytest.mark.parametrize(("bound", "text"), [("at_least", "at least 30.0 ms"), ("failed", "failed")])
def test_the_terminal_shows_what_is_known(bound: Bound, text: str) -> None:
    results = experiment(set_bound(bound), question=asking(metrics=("throughput", P99)))
    projected = project_results(results, Projection())
    console = Console(file=io.StringIO(), width=200, highlight=False)
    tables.show(console, judge_results(projected.results), projected)
    assert isinstance(console.file, io.StringIO)
    output = console.file.getvalue()
    assert text in output
    assert "not ranked: p99 of rocksdb" in output


@pytest.mark.parametrize("bound", ["at_least", "failed"])
def test_trial_line_shows_its_bound(bound: Bound) -> None:
    trial = set_figures(all__p99=1.2e9)(experiment().trials[0])
    trial = replace(trial, values={**trial.values, "all.p99": replace(trial.values["all.p99"], bound=bound)})
    assert f"p99 {'failed' if bound == 'failed' else 'at least 1.20 s'}" in line(trial)


def test_one_figure_alone_is_shown_as_a_bound() -> None:
    result = experiment(set_bound("at_least"), question=asking(metrics=(P99,)))
    alone = replace(result, trials=[trial for trial in result.trials if trial.config["system"] == "rocksdb"])
    alone = replace(alone, trials=[replace(trial, values={P99: trial.values[P99]}) for trial in alone.trials])
    assert judge_results(alone).answer.startswith("read p99 is at least 30.0 ms (")


def test_charts_draw_no_curve_through_bounds() -> None:
    view = View(judge_change(set_bound("at_least", metric="read.p99.9"), "throughput", "read.p99.9"))
    figure = percentiles.curves(view)
    assert "Not drawn, as operations failed or never completed: rocksdb read p99.9." in figure.caption
    (panel,) = intervals.chart_further_metrics(view).panels
    assert "at least 50.0 ms" in json.dumps(panel.spec, ensure_ascii=False)


def test_an_export_and_the_json_have_the_bound() -> None:
    results = experiment(set_bound("failed"), question=asking(metrics=("throughput", P99)))
    file = io.StringIO()
    write_csv(results, file)
    rows = [row for row in csv.DictReader(io.StringIO(file.getvalue())) if row["metric"] == P99]
    assert {(row["system"], row["bound"]) for row in rows} == {("rocksdb", "failed"), ("lmdb", "")}
    exported = judgement_document(judge_results(results))
    assert {(cell["variant"]["system"], cell["bound"]) for cell in exported["cells"] if cell["metric"] == P99} == {
        ("rocksdb", "failed"),
        ("lmdb", None),
    }
    assert [value["why"] for value in exported["comparisons"]] == [
        "",
        "p99 of rocksdb is unbounded, as too many operations failed",
    ]


def test_bound_is_compared_and_unknown_bound_is_refused() -> None:
    trial = set_bound("at_least")(experiment().trials[0])
    written = json.loads(json.dumps(trial.to_json()))
    assert TrialResult.from_json(written) == trial
    # The format of version 1.
    assert [row for row in written["values"] if "bound" in row] == [
        {"metric": P99, "value": 3e7, "unit": "ns", "n": 100_000, "bound": "at_least"}
    ]
    for wrong in ("at_most", 7, ["failed"]):
        written["values"][0]["bound"] = wrong
        with pytest.raises(ValueError, match="bound"):
            TrialResult.from_json(written)


# A rate that was not reached.


def overload_side(side: Callable[[Change], Change]) -> Change:
    """Runs all trials at a rate; one side leaves 2 % of the operations unfinished."""
    return both(lambda trial: replace(trial, loop="open"), side(set_figures(due=100_000, censored=2_000)))


def test_missed_rate_affects_latency_but_not_throughput() -> None:
    judgement = judge_change(overload_side(rocksdb))
    assert comparison(judgement, P99).claim == "refused"
    result = comparison(judgement, "throughput")
    assert (result.claim, result.verdict) == ("better", Verdict.VALID)
    assert judgement.trial_verdict("rocksdb-1") == Verdict.INVALID
    view = View(judgement)
    verdicts = {
        metric: {row[0].text: row[-1].verdict for group in table(view, metric).groups for row in group.rows}
        for metric in ("throughput", P99)
    }
    assert verdicts["throughput"] == {"rocksdb": Verdict.VALID, "lmdb": Verdict.VALID}
    assert verdicts[P99] == {"rocksdb": Verdict.INVALID, "lmdb": Verdict.INVALID}
