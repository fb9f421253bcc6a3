"""The report of an experiment with faults: answer, charts, tables; as a page, as Markdown and on a terminal."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from functools import cache

import pytest
import vl_convert
from rich.console import Console

from fault_support import REPEATS, experiment_with_faults, instants, trial_of
from loadstone.judge.finding import Effect, Finding, Severity, Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.judge.outages import outage_clause, outage_clauses, recovery_text, summarize_outages
from loadstone.judge.settings import Settings
from loadstone.report import faults as fault_tables
from loadstone.report import html
from loadstone.report.charts import faults as charts
from loadstone.report.charts import figure as figures
from loadstone.report.charts import percentiles, theme
from loadstone.report.charts.scaling import curves
from loadstone.report.faults import tables
from loadstone.report.markup import countable
from loadstone.report.sections import sections
from loadstone.report.terminal.tables import plain_table
from loadstone.report.view import View
from loadstone.results.result_set import ResultSet, variant_key
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.statistics.percentile import Bound
from report_support import page, pull_request, scaling

BAND = {"start", "end"}


@cache
def judge_scripted() -> Judgement:
    return judge_results(experiment_with_faults())


def alter_kills(change: dict[int, Value]) -> ResultSet:
    """The experiment with another figure in some repeats of the kill at QUORUM."""
    results = experiment_with_faults()
    trials = [
        replace(trial, values={**trial.values, change[trial.repeat].metric: change[trial.repeat]})
        if trial.trial.startswith("QUORUM-kill") and trial.repeat in change
        else trial
        for trial in results.trials
    ]
    return replace(results, trials=trials)


def test_answer_has_outage_recovery_and_loss() -> None:
    judgement = judge_scripted()
    assert judgement.verdict == Verdict.VALID
    assert judgement.answer == (
        "level=ONE (restarted after 30.0 s): outage 1.67 s (n=6, all equal), none without the fault;"
        " recovered before the order to restart the server (6 of 6); acknowledged writes lost in 2 of 6 kills, 6 to 15"
        " writes each, the oldest between 41.0 and 46.0 ms old (the setting allows up to 100 ms); probability of a loss"
        " per kill: 4.3–78 % (95 % interval)"
    )
    quorum, failures, comparison, *_ = judgement.further
    assert "outage 14.3 s (96.9 % interval 14.0 to 14.7 s, n=6)" in quorum
    assert (
        "recovered 12.0 s after the order to restart the server (median, 6 of 6); no acknowledged write lost in 6 kills"
        in quorum
    )
    assert re.match(r"in QUORUM-kill-\d, [\d,]+ operations failed during the kill of ", failures)
    assert "outage is 88 % lower with ONE than" in comparison


def test_censored_recoveries_are_counted_and_not_averaged() -> None:
    censored = Value("recovered", 77e9, "ns", 1, "at_least")
    judgement = judge_results(alter_kills({1: censored, 2: censored}))
    assert (
        "recovered 12.6 s after the order to restart the server (median, 4 of 6), not within 77.0 s in 2 of 6"
        in judgement.further[0]
    )


def test_mostly_censored_recovery_has_no_median() -> None:
    censored = Value("recovered", 77e9, "ns", 1, "at_least")
    judgement = judge_results(alter_kills(dict.fromkeys(range(1, 5), censored)))
    assert (
        "recovered 11.0 s to 13.1 s after the order to restart the server in 2 of 6, not within 77.0 s in 4 of 6"
        in judgement.further[0]
    )


def test_unverified_faults_are_excluded_from_the_outage() -> None:
    results = experiment_with_faults()
    trials = [
        replace(trial, faults=(replace(trial.faults[0], held_ns=None),)) if trial.trial == "QUORUM-kill-3" else trial
        for trial in results.trials
    ]
    outages = judge_results(replace(results, trials=trials)).outages
    assert [(len(outage.trials), outage.excluded) for outage in outages] == [(6, 0), (5, 1)]


def test_outage_is_paired_with_the_blocks_twin() -> None:
    results = experiment_with_faults()
    trials = [
        replace(trial, values={**trial.values, "outage": Value("outage", 1e9 * trial.repeat, "ns", 1)})
        if trial.config["fault"] == "none"
        else replace(trial, values={**trial.values, "outage": Value("outage", 1e9 * trial.repeat + 5e8, "ns", 1)})
        for trial in results.trials
    ]
    settings = Settings()
    for outage in summarize_outages(replace(results, trials=trials).variants, {}, settings):
        assert (outage.excess_ns, outage.blocks) == (5e8, REPEATS)
        # A twin with any outage is not "none", even if the median is 0.
        rare = replace(outage, twin_outages_ns=(0.0, 0.0, 9e7))
        assert ", without the fault 0 s (500 ms more, " in outage_clause(rare, {})
        middle = (REPEATS + 1) / 2
        assert f", without the fault {middle:.2f} s (500 ms more, median of the differences)" in outage_clause(
            outage, {}
        )


def test_early_recoveries_do_not_hide_late_ones() -> None:
    results = experiment_with_faults()
    outage, *_ = summarize_outages(results.variants, {}, Settings())
    for recovered, censored, text in [
        ((0.0, 0.0, 0.0), (), "recovered before the order to restart the server (3 of 3)"),
        (
            (0.0, 0.0, 9e9),
            (),
            "recovered before the order to restart the server in 2 of 3, 9.00 s after that order in 1 of 3",
        ),
        (
            (0.0,),
            (40e9, 30e9),
            "recovered before the order to restart the server (1 of 3), not within 30.0 s in 2 of 3",
        ),
        (
            (5e9,),
            (40e9, 41e9),
            "recovered 5.00 s after the order to restart the server in 1 of 3, not within 40.0 s in 2 of 3",
        ),
    ]:
        assert recovery_text(replace(outage, recovered_ns=recovered, censored_ns=censored)) == text


def close_loop(trial: TrialResult) -> TrialResult:
    figures = {metric: value for metric, value in trial.values.items() if metric not in ("outage", "recovered")}
    share = Value("during.throughput_share", 0.4, "share", 1)
    return replace(trial, loop="closed", values={**figures, share.metric: share})


def test_closed_loop_answers_without_an_outage() -> None:
    results = experiment_with_faults()
    outages = summarize_outages(replace(results, trials=[*map(close_loop, results.trials)]).variants, {}, Settings())
    first = next(iter(outage_clauses(outages)))
    assert "throughput during the fault is 40 % of the throughput before it (n=6, longest gap" in first
    assert "so there is no outage in seconds); over the whole window " in first
    assert re.search(r"whole window [\d,.]+ op/s, without the fault [\d,.]+ op/s", first)


def test_instants_after_the_window_are_in_the_caption() -> None:
    results = experiment_with_faults()
    trials = [
        replace(trial, faults=tuple(replace(fault, ready_ns=int(1e12)) for fault in trial.faults))
        for trial in results.trials
    ]
    view = View(judge_results(replace(results, trials=trials)))
    chart = charts.timeline(view)
    assert re.search(r"After the end of the window: .* ready at ", chart.caption)
    rows = [row for panel in chart.panels for data in panel.spec["datasets"].values() for row in data]
    assert not any(row.get("label") == "ready" for row in rows)
    for panel in chart.panels:
        marks = [row["row"] for data in panel.spec["datasets"].values() for row in data if "label" in row]
        assert len(set(marks)) == len(marks)


@pytest.mark.parametrize("repeat", [1, 4])
def test_timeline_has_every_operation(repeat: int) -> None:
    trial, series = trial_of("QUORUM", "kill", repeat)
    time_series = charts.series_around(series, charts.order_seconds(trial.faults[0]), 0.1)
    assert time_series is not None
    assert [sum(values) for values in zip(*time_series.outcomes.values(), strict=True)] == pytest.approx(
        time_series.due
    )
    first = time_series.seconds.index(0.0)
    assert min(time_series.yields[:first]) == 1
    assert min(time_series.yields[first + 1 : first + 20]) < 1


def test_repeats_are_aligned_at_the_order() -> None:
    assert len({instants(repeat)[0] for repeat in range(1, REPEATS + 1)}) == REPEATS
    for panel in charts.repeats(View(judge_scripted())).panels:
        [rows] = [rows for rows in panel.spec["datasets"].values() if rows and "trial" in rows[0]]
        falling = {row["trial"] for row in rows if 0 < row["seconds"] < 2 and row["value"] < 0.9}
        assert len(falling) == REPEATS
        assert all(row["value"] == 1 for row in rows if row["seconds"] < -2)


def test_charts_render_with_band_and_instants() -> None:
    view = View(judge_scripted())
    for chart in (charts.timeline(view), charts.repeats(view)):
        spec = json.dumps(countable(figures.combine_panels(chart, theme.file_config())))
        assert "<svg" in vl_convert.vegalite_to_svg(spec, vl_version=html.vegalite())
    text = json.dumps(charts.timeline(view).panels[1].spec)
    assert all(f'"label": "{name}"' in text for name in ("detected", "ready", "recovered"))
    [band] = [rows for rows in charts.timeline(view).panels[1].spec["datasets"].values() if rows[0].keys() == BAND]
    assert band == [{"start": 0.0, "end": pytest.approx(30.3)}]


def test_charts_over_time_have_a_crosshair() -> None:
    view = View(judge_scripted())
    for chart, title in ((charts.timeline(view), "failed"), (charts.repeats(view), "median with the fault")):
        for panel in chart.panels:
            assert [param["name"] for param in panel.spec["params"]] == ["pointer"]
            assert f'"title": "{title}"' in json.dumps(panel.spec)


def test_legend_marks_are_in_the_charts() -> None:
    view, sweep = View(judge_scripted()), View(scaling())
    every = (charts.timeline(view), charts.repeats(view), curves(sweep), percentiles.curves(sweep))
    for chart in every:
        assert len(chart.legend) > 1
        rows = [row for panel in chart.panels for data in panel.spec["datasets"].values() for row in data]
        assert {name for name, _ in chart.legend} <= {row.get("name") for row in rows}
        for panel in chart.panels:
            marks = [
                layer["encoding"]["shape"]["scale"]
                for layer in panel.spec["layer"]
                if layer["mark"]["type"] == "point" and "shape" in layer["encoding"]
            ]
            assert marks, f"{chart.name}: without colours its series are the same"
            for scale in marks:
                shapes = dict(zip(scale["domain"], scale["range"], strict=True))
                assert {name: shapes[name] for name, _ in chart.legend} == {
                    name: theme.SHAPES[number] for name, number in chart.legend
                }


def test_page_and_markdown_have_all_tables() -> None:
    judgement = judge_scripted()
    for document in (page(judgement), pull_request(judgement)):
        for title in ("Outage and recovery", "By window", "Instants", "Losses", "All repeats"):
            assert title in document or title == "All repeats"
        assert "returning" in document
        assert "∞" in document
    assert next(section.name for section in sections(View(judgement))) == "faults"


def add_ranges(trial: TrialResult, bound: Bound | None) -> TrialResult:
    figures = [
        Value("range.outage", 30e9 + trial.repeat * 1e8, "ns", 3),
        Value("range.interrupted", 1, "ranges", 3),
        Value("range.affected", 0.3333, "share", 3, bound),
    ]
    return replace(trial, values={**trial.values, **values_by_metric(*figures)})


def test_interrupted_key_ranges_are_in_the_table() -> None:
    results = experiment_with_faults()
    without, *_ = tables(View(judge_scripted()))
    assert not any("key ranges" in column.title for column in without.columns)
    assert without.notes[-1].startswith("The outage by key range is unknown")
    cases: list[tuple[Bound | None, str]] = [(None, "33.3 %"), ("at_least", "at least 33.3 %")]
    for bound, share in cases:
        trials = [add_ranges(trial, bound) if trial.config["level"] == "QUORUM" else trial for trial in results.trials]
        judgement = judge_results(replace(results, trials=trials))
        assert f"; 1 of 3 key ranges interrupted ({share} of the keys; largest outage" in judgement.further[0]
        table, *_ = tables(View(judgement))
        at = [column.title for column in table.columns].index("interrupted key ranges")
        level_one, quorum = table.groups[0].rows
        assert (quorum[at].text, quorum[at].note) == (
            "1 of 3",
            f"{share} of the keys; largest outage of a range: 30.4 s",
        )
        assert level_one[at].text == "unknown"
        assert table.notes[-1].startswith("A key range consists of the keys whose copies are on the same servers")


def test_connections_to_the_victim_are_in_the_table() -> None:
    results = experiment_with_faults()
    figures = (
        Value("connections.attempted", 98, "attempts", 98),
        Value("connections.attempt_rate", 1.9876, "attempts/s", 98),
    )

    def lose_connections(trial: TrialResult) -> TrialResult:
        order_ns, lift_ns = instants(trial.repeat)
        record = replace(trial.faults[0], unusable_ns=order_ns + 310_000_000, usable_ns=lift_ns + 9_400_000_000)
        values = {**trial.values, **values_by_metric(*figures)}
        return replace(trial, faults=(record,), values=values, facts={**trial.facts, "reconnect": "constant(500 ms)"})

    titles = ("no usable connection", "usable again", "attempts to connect")
    for change, cells, notes in ((None, [], 1), (lose_connections, ["310 ms", "39.4 s", "98"], 2)):
        trials = [change(trial) if change is not None else trial for trial in results.trials]
        table = {table.title: table for table in tables(View(judge_results(replace(results, trials=trials))))}[
            "Instants"
        ]
        columns = [column.title for column in table.columns]
        row = table.groups[0].rows[0]
        assert [row[columns.index(title)].text for title in titles if title in columns] == cells
        assert len(table.notes) == notes
    assert row[columns.index("attempts to connect")].note == "at most 1.99/s while unusable"
    assert "`reconnect=constant(500 ms)`" in table.notes[-1]


def test_terminal_prints_tables_of_faults() -> None:
    console = Console(file=io.StringIO(), width=240)
    for content in tables(View(judge_scripted())):
        if (table := plain_table(content.title, content)) is not None:
            console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "14.3 s (96.9 % interval 14.0 to 14.7 s, n=6)" in text
    assert "node-2" in text


def test_results_without_faults_have_no_fault_section() -> None:
    results = experiment_with_faults()
    trials = [replace(trial, faults=()) for trial in results.trials]
    judgement = judge_results(replace(results, trials=trials))
    assert judgement.outages == []
    assert "faults" not in [section.name for section in sections(View(judgement))]
    assert variant_key(trials[0].config) in judgement.variants


def test_unsteady_level_withholds_no_count_of_losses() -> None:
    results = experiment_with_faults()
    unsteady = Finding("before-unsteady", Severity.INVALID, "noisy", "", effect=Effect(excludes=True))
    findings = {trial.trial: [unsteady] for trial in results.trials}
    outages = summarize_outages(results.variants, findings, Settings())
    clauses = list(outage_clauses(outages))
    table = fault_tables.losses(View(judge_scripted()), outages)
    assert [row[5].text for row in table.groups[0].rows] == [f"{6 * 50_000:,}"] * 2
    assert "outage unknown" in clauses[0]
    assert "acknowledged writes lost in 2 of 6 kills" in clauses[0]
    missed = {trial.trial: [replace(unsteady, check="fault-missed")] for trial in results.trials}
    (clause, *_) = outage_clauses(summarize_outages(results.variants, missed, Settings()))
    assert "lost in 2 of 6" not in clause
