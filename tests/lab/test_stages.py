"""A rate with stages, from the experiment file and the engine's pace to the counts, checks and report of each stage."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from event_support import SECOND, earlier, interval, outcome
from experiment_support import load_text, mistakes
from figure_support import count_repeated, find_conflicts
from judge_support import experiment as sound_results
from judge_support import sound, value
from lab_support import experiment, loadstone, single_folder, trials
from loadstone.experiment.file import ExperimentError
from loadstone.experiment.plan.description import describe_plan
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.experiment.plan.stages import rate_pieces
from loadstone.judge.finding import Finding, Severity, Verdict, concerns_metric
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report import stages as report
from loadstone.report.charts import time_series as charts
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.stage import Stage, stages_of
from loadstone.results.trial_result import Series
from loadstone.runner import stage_figures

HEAD = "systems: [lmdb, redb]\nworkload: {properties: {recordcount: 100}}\n"
SPIKE = "rate: {stages: [{for: 1s, at: 1000}, {for: 200ms, to: 3000}, {for: 300ms, at: 0}, {for: 1s, at: 500}]}\n"


def test_stages_set_window_intervals_and_metrics(tmp_path: Path) -> None:
    resolved = load_text(tmp_path, HEAD + SPIKE).experiment
    assert (resolved.measure.duration, resolved.measure.interval, resolved.pilot, resolved.measure.warmup) == (
        2.5,
        0.1,
        False,
        2.0,
    )
    metrics = [f"stage{number}.all.p99" for number in (2, 1, 4)]
    assert resolved.compare.metrics == (*metrics, "throughput")


def test_stages_become_pieces_after_warm_up(tmp_path: Path) -> None:
    (first, _) = plan_experiment(load_text(tmp_path, HEAD + SPIKE).experiment).variants
    assert [(stage.start_ns, stage.rate_from, stage.rate_to) for stage in first.stages] == [
        (0, 1000, 1000),
        (1_000_000_000, 1000, 3000),
        (1_200_000_000, 0, 0),
        (1_500_000_000, 500, 500),
    ]
    assert first.rate is None
    assert rate_pieces(first.stages, 2.0) == [
        {"from": 1000, "to": 1000, "seconds": 2.0},
        {"from": 1000, "to": 1000, "seconds": 1.0},
        {"from": 1000, "to": 3000, "seconds": 0.2},
        {"from": 0, "to": 0, "seconds": 0.3},
        {"from": 500, "to": 500, "seconds": 1.0},
    ]


def test_ramp_from_and_to_zero_has_warm_up(tmp_path: Path) -> None:
    text = HEAD + "rate: {stages: [{for: 1s, to: 200}, {for: 1s, to: 0}]}\n"
    (first, _) = plan_experiment(load_text(tmp_path, text).experiment).variants
    ends = [(piece["from"], piece["to"]) for piece in rate_pieces(first.stages, 1.0)]
    assert ends == [(200, 200), (0, 200), (200, 0), (200, 200)]


def test_resolved_stages_are_read_equally(tmp_path: Path) -> None:
    document = load_text(tmp_path, HEAD + SPIKE)
    assert load_text(tmp_path, document.text_with_defaults).experiment == document.experiment


def test_stage_rate_may_vary(tmp_path: Path) -> None:
    text = HEAD + 'rate: {stages: [{for: 1s, at: 100}, {for: 1s, at: "{peak}"}]}\nvary: {peak: [200, 400]}\n'
    document = load_text(tmp_path, text)
    assert document.warnings == ()
    rates = {
        variant.config["peak"]: variant.stages[1].rate_to for variant in plan_experiment(document.experiment).variants
    }
    assert rates == {200: 200.0, 400: 400.0}
    assert document.experiment.compare.metrics[0] == "stage2.all.p99"


def test_dry_run_describes_stages(tmp_path: Path) -> None:
    text = describe_plan(plan_experiment(load_text(tmp_path, HEAD + SPIKE).experiment))
    assert "stages     1: 1,000 op/s for 1s\nstages     2: 1,000 to 3,000 op/s for 200ms\n" in text
    assert "3: pause for 300ms" in text
    assert "4 stages, 0 to 3,000 op/s uniform" in text
    assert "measure 2500ms" in text


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("[]", "rate.stages is empty"),
        ("[{for: 0s, at: 5}]", 'rate.stages[1].for must be longer than 0, got "0s"'),
        ("[{for: 50ms, at: 5}]", 'rate.stages[1].for must be a multiple of 100ms, got "50ms"'),
        ("[{for: soon, at: 5}]", 'rate.stages[1].for must be a duration, got "soon"'),
        ("[{at: 5}]", "`rate.stages[1].for` is missing"),
        ("[{for: 1s}]", "rate.stages[1] has neither `at` nor `to`"),
        ("[{for: 1s, at: 5, to: 7}]", "rate.stages[1] has both `at` and `to`"),
        ("[{for: 1s, at: 5}, {for: 1s, at: 5, from: 7}]", "rate.stages[2] has both `at` and `from`"),
        ("[{for: 1s, at: 0}]", "rate.stages has no rate above 0"),
        ("[{for: 1s, at: -1}]", "rate.stages[1].at must be a number of operations per second, got -1"),
        ("[{for: 1s, at: 10k}]", 'rate.stages[1].at must be a number of operations per second, got "10k"'),
        ("[{for: 1s, rate: 5}]", 'there is no key "rate" in rate.stages[1]'),
    ],
)
def test_wrong_stage_is_one_mistake(tmp_path: Path, stages: str, message: str) -> None:
    assert mistakes(tmp_path, HEAD + f"rate: {{stages: {stages}}}\n") == [message]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("vary: {rate: [5, 6]}", "`rate.stages` and vary.rate cannot be combined"),
        ("find: {over: rate}", "`find` and `rate.stages` cannot be combined"),
        ("measure: {duration: 5s}", "measure.duration is 5s, but the stages take 2500ms"),
        ("measure: {operations: 500}", "`measure.operations` and `rate.stages` cannot be combined"),
        ("measure: {interval: 70ms}", "measure.interval is 70ms, which does not divide the length of each stage"),
        ("pilot: true", "there can be no pilot block with `rate.stages`"),
        ("compare: {metrics: [stage5.all.p99]}", "there is no stage 5: the rate has 4 stages"),
    ],
)
def test_stages_refuse_contradictions(tmp_path: Path, more: str, message: str) -> None:
    assert mistakes(tmp_path, f"{HEAD}{SPIKE}{more}\n") == [message]


def test_stage_mistake_has_line_and_hint(tmp_path: Path) -> None:
    text = f"{HEAD}rate:\n  stages:\n    - {{for: 1s, at: 5}}\n    - {{for: 1s, two: 7}}\n"
    with pytest.raises(ExperimentError) as caught:
        load_text(tmp_path, text)
    (mistake,) = caught.value.mistakes
    assert str(mistake.location).endswith("experiment.yaml:6")
    assert mistake.hint.startswith('did you mean "to"?')


def due(pieces: Sequence[tuple[float, float, float]], start: float, end: float) -> int:
    """The number of operations due between two instants, for stages given as (first rate, last rate, seconds)."""

    def integral(until: float) -> float:
        total = 0.0
        for first, last, seconds in pieces:
            part = min(max(until, 0.0), seconds)
            total += first * part + (last - first) * part * part / (2 * seconds)
            until -= seconds
        return total

    return math.ceil(round(integral(end), 6)) - math.ceil(round(integral(start), 6))


def test_stages_count_operations_exactly(tmp_path: Path) -> None:
    text = """
systems: {first: {store: 'null'}}
workload: {properties: {recordcount: 1000}}
clients: 2
measure: {warmup: 200ms}
rate: {stages: [{for: 300ms, at: 1000}, {for: 400ms, from: 500, to: 2500}, {for: 100ms, at: 0}, {for: 200ms, to: 700}]}
repeats: 1
"""
    loadstone(tmp_path, "run", experiment(tmp_path, text, "stages.yaml"))
    (trial,) = trials(single_folder(tmp_path))
    pieces = [(1000, 1000, 0.5), (500, 2500, 0.4), (0, 0, 0.1), (0, 700, 0.2)]
    borders = [0.2, 0.5, 0.9, 1.0, 1.2]
    expected = [due(pieces, *ends) for ends in pairwise(borders)]
    assert [trial.value(f"stage{number}.due") for number in (1, 2, 3, 4)] == expected == [300, 600, 0, 70]
    assert trial.value("due") == sum(expected)
    for number, count in enumerate(expected, 1):
        answered = (trial.value(f"stage{number}.all.count") or 0) + (trial.value(f"stage{number}.errors") or 0)
        assert answered + (trial.value(f"stage{number}.unanswered") or 0) == count
    assert "stage3.throughput" not in trial.values
    page = (single_folder(tmp_path).path / "report.html").read_text()
    assert "By stage" in page


def write_events(path: Path, *events: dict[str, object]) -> None:
    """Writes the events of a measured phase."""
    (path / "run.events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))


def test_operations_belong_to_stage_they_were_due_in(tmp_path: Path) -> None:
    ok = outcome("READ", "OK", [1000, 1000], [1000, 5000])
    failed = outcome("READ", "ERROR", [2000], [2000])
    late = earlier(0, [outcome("READ", "OK", [1000], [9 * SECOND // 10])])
    write_events(
        tmp_path,
        interval(0, [ok], due=4, late_client=1),
        interval(1, [ok, failed], due=3, good=2, failed=1, completed=3, ended=4, earlier=[late]),
    )
    stages = (Stage(1, 0, SECOND, 4, 4), Stage(2, SECOND, SECOND, 3, 3))
    trial = stage_figures.add_figures(sound(), stages, tmp_path)
    assert stages_of(trial) == [*stages]
    first, second = (
        {name: trial.value(f"stage{number}.{name}") for name in ("due", "errors", "unanswered", "throughput")}
        for number in (1, 2)
    )
    assert first == {"due": 4, "errors": 0, "unanswered": 1, "throughput": 2}
    assert second == {"due": 3, "errors": 1, "unanswered": 0, "throughput": 3}
    assert trial.value("stage1.late.client") == 1
    # One operation was sent almost 0.9 s late, and one 4 µs late.
    assert trial.value("stage1.wait.mean") == pytest.approx((0.9e9 - 1000 + 4000) / 3, rel=1e-2)
    assert trial.values["stage2.all.max"].bound == "failed"


POINTS = 40
# The requested rate of each stage.
RATES = (100.0, 400.0, 100.0)


def stage_results(
    p99_ns: Callable[[int, int], float] = lambda *_: 1e7, unanswered: float = 0, rates: Sequence[float] = RATES
) -> ResultSet:
    """Trials of two systems with three stages; `p99_ns` returns lmdb's p99 in a stage and second."""
    results = sound_results()
    trials, series = [], {}
    for trial in results.trials:
        is_lmdb = trial.config["system"] == "lmdb"
        figures = dict(trial.values)
        columns = []
        for number, rate in enumerate(rates, 1):
            stage = Stage(number, (number - 1) * POINTS * SECOND, POINTS * SECOND, rate, rate)
            count = rate * POINTS
            lost = unanswered if is_lmdb and number == 2 else 0
            level = (1e7 if is_lmdb else 2e7) * (1 + 0.003 * (trial.repeat % (3 if is_lmdb else 4)))
            figures |= {figure.metric: figure for figure in stage.values()}
            figures |= {
                f"{stage.prefix}{name}": value(f"{stage.prefix}{name}", figure, int(count))
                for name, figure in {
                    "due": count,
                    "errors": 0,
                    "unanswered": lost,
                    "all.p99": level,
                    "throughput": rate,
                }.items()
            }
            columns += [(rate, p99_ns(number, at) if is_lmdb else 2e7) for at in range(POINTS)]
        throughput, tail = zip(*columns, strict=True)
        starts = tuple(float(at) for at in range(len(columns)))
        ones = (1.0,) * len(columns)
        series[trial.trial] = Series(starts, ones, throughput, p50_ns=tail, p99_ns=tail, failed=(0,) * len(columns))
        trials.append(replace(trial, values=figures, loop="open"))
    question = Question(by="system", metrics=("stage2.all.p99", "stage1.all.p99", "stage3.all.p99"))
    return replace(results, trials=trials, series=series.get, question=question)


def findings_of(judgement: Judgement, check: str) -> list[Finding]:
    """The findings of a check on trials."""
    return [finding for every in judgement.trials.values() for finding in every if finding.check == check]


def claims(judgement: Judgement) -> dict[str, str]:
    """The claim by metric."""
    return {comparison.metric: comparison.claim for comparison in judgement.comparisons}


def test_equal_stages_are_compared() -> None:
    judgement = judge_results(stage_results())
    assert set(claims(judgement).values()) == {"better"}
    assert judgement.answer.startswith("stage 2 p99 is 50 % lower with lmdb than ")
    assert findings_of(judgement, "not-steady") == []
    assert findings_of(judgement, "rate-not-held") == []


def test_rising_stage_makes_only_its_figures_suspect() -> None:
    judgement = judge_results(stage_results(lambda number, at: 1e7 * (1 + at / 4) if number == 2 else 1e7))
    matches = findings_of(judgement, "not-steady")
    assert {(finding.metric, finding.severity) for finding in matches} == {("stage2.", Severity.SUSPECT)}
    assert all(finding.message.startswith("stage 2 (400 op/s): the p") for finding in matches)
    verdicts = {comparison.metric: comparison.verdict for comparison in judgement.comparisons}
    assert verdicts["stage2.all.p99"] == Verdict.SUSPECT
    assert verdicts["stage1.all.p99"] == verdicts["stage3.all.p99"] == Verdict.VALID


def test_drain_after_higher_rate_is_a_note() -> None:
    judgement = judge_results(stage_results(lambda number, at: 1e7 * (11 - at / 4) if number == 3 else 1e7))
    matches = findings_of(judgement, "not-steady")
    assert {(finding.metric, finding.severity) for finding in matches} == {("stage3.", Severity.NOTE)}


def test_ramp_is_not_tested_for_steadiness() -> None:
    results = stage_results(lambda number, at: 1e7 * (1 + at / 4) if number == 2 else 1e7)
    ramps = [
        replace(trial, values={**trial.values, "stage2.rate_from": value("stage2.rate_from", 100.0)})
        for trial in results.trials
    ]
    assert findings_of(judge_results(replace(results, trials=ramps)), "not-steady") == []


def test_unanswered_operations_refuse_their_stage_alone() -> None:
    judgement = judge_results(stage_results(unanswered=160))
    (message,) = {finding.message for finding in findings_of(judgement, "rate-not-held")}
    assert message == "stage 2 (400 op/s): 1 % of the 16,000 operations due did not complete by the cut-off"
    assert claims(judgement) == {
        "stage2.all.p99": "refused",
        "stage1.all.p99": "better",
        "stage3.all.p99": "better",
    }


def test_stage_finding_concerns_its_figures_and_the_whole() -> None:
    finding = Finding("rate-not-held", Severity.INVALID, "", "", (), "stage2.", "latencies")
    metrics = ("stage2.read.p99", "stage1.read.p99", "stage21.read.p99", "read.p99", "throughput")
    assert [concerns_metric(finding, metric) for metric in metrics] == [True, False, False, True, False]


def test_pause_is_not_a_stall() -> None:
    judgement = judge_results(stage_results(rates=(100.0, 0.0, 100.0)))
    assert findings_of(judgement, "stalled") == []


def test_stage_figures_agree_everywhere() -> None:
    judgement = judge_results(stage_results())
    assert find_conflicts(judgement) == []
    (group, *_) = report.create_table(View(judgement)).groups
    assert [row[0].text for row in group.rows] == ["1", "2", "3"]
    assert [row[1].text for row in group.rows] == ["100 op/s", "400 op/s", "100 op/s"]
    assert count_repeated(judgement) > 0


def test_unanswered_operations_of_a_stage_are_not_failed() -> None:
    results = stage_results(unanswered=160)
    trials = [
        replace(
            trial,
            values={
                **trial.values,
                "stage2.errors": value("stage2.errors", 0),
                "stage2.all.p99": replace(trial.values["stage2.all.p99"], bound="failed"),
            },
        )
        for trial in results.trials
    ]
    (group, *_) = report.create_table(View(judge_results(replace(results, trials=trials)))).groups
    texts = [entry.text for entry in group.rows[1]]
    assert "unanswered" in texts
    assert "failed" not in texts


def test_stage_without_success_has_no_steadiness() -> None:
    (group, *_) = report.create_table(View(judge_results(stage_results(rates=(100.0, 0.0, 100.0))))).groups
    assert [row[-1].text for row in group.rows] == ["yes", "–", "yes"]


def test_charts_over_time_have_bands_of_stages() -> None:
    view = View(judge_results(stage_results()))
    figure = charts.throughput(view, charts.select_series(view))
    rows = [row for data in figure.panels[0].spec["datasets"].values() for row in data]
    bands = {row["stage"]: (row["start"], row["end"]) for row in rows if "stage" in row}
    assert bands == {"1": (0, 40), "2": (40, 80), "3": (80, 120)}
    requested = [(row["seconds"], row["value"]) for row in rows if "order" in row]
    assert requested == [(0, 100), (40, 100), (40, 400), (80, 400), (80, 100), (120, 100)]
