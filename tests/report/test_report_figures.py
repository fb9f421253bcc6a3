"""A report never shows two values for one figure: tables, charts, Markdown and terminal are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import report_support
from figure_support import agree, collect_figures, count_repeated, find_conflicts, find_unsupported
from imports_support import FIXTURES
from judge_support import experiment, set_figures
from loadstone.importers.read import read_file
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report import comparison
from loadstone.report.charts import intervals, scaling
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value

OUTPUTS = sorted(path for path in FIXTURES.iterdir() if ".facts." not in path.name and path.name != "README.md")
# Trials of real runs, after a line with the question.
KINDS = sorted((Path(__file__).parents[1] / "fixtures/kinds").iterdir())
VERSIONS = sorted((Path(__file__).parents[1] / "fixtures/results").iterdir())


@pytest.mark.parametrize("name", report_support.ALL)
def test_crafted_report_has_one_value_per_figure(name: str) -> None:
    assert find_conflicts(report_support.ALL[name]()) == []


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_imported_report_has_one_value_per_figure(path: Path) -> None:
    trials = [run.result for run in read_file(path, {})]
    assert find_conflicts(judge_results(ResultSet(path.stem, trials))) == []


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.name)
def test_recorded_report_has_one_value_per_figure(path: Path) -> None:
    judgement = judge_results(Folder(path).load_results())
    assert find_conflicts(judgement) == []
    assert find_unsupported(judgement) == []
    assert count_repeated(judgement) > 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda path: path.stem)
def test_workload_kinds_have_one_value_per_figure(kind: Path) -> None:
    question, *rows = map(json.loads, kind.read_text().splitlines())
    trials = [TrialResult.from_json(row) for row in rows]
    results = ResultSet(kind.stem, trials, Question(**{**question, "metrics": tuple(question["metrics"])}))
    judgement = judge_results(results)
    assert find_conflicts(judgement) == []
    places = {place.where for places in collect_figures(judgement).values() if len(places) > 1 for place in places}
    assert {"the JSON output", "the CSV export", "terminal's table"} <= places
    assert find_unsupported(judgement) == []


@pytest.mark.parametrize("repeats", [1, 2, 6])
@pytest.mark.parametrize("systems", [1, 2])
def test_collapsing_sweep_has_one_value_per_figure(repeats: int, systems: int) -> None:
    loads = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    base = experiment(repeats=repeats)

    def scale_trial(trial: TrialResult, load: int) -> TrialResult:
        noise = 1 + 0.01 * ((7 * trial.repeat + load) % 5)
        throughput = 1000 * min(load, 24) * noise * (0.6 if load > 32 else 1)
        values = set_figures(throughput=throughput, all__mean=1e9 * load / throughput)(trial).values
        config = {**trial.config, "clients": load}
        return replace(trial, trial=f"{load}-{trial.trial}", values=values, config=config, clients=load)

    trials = [scale_trial(trial, load) for load in loads for trial in base.trials]
    if systems == 1:
        trials = [trial for trial in trials if trial.config["system"] == "lmdb"]
    judgement = judge_results(replace(base, trials=trials, question=Question(metrics=("throughput", "read.p99"))))
    assert find_conflicts(judgement) == []
    assert find_unsupported(judgement) == []
    places = {place.where for places in collect_figures(judgement).values() if len(places) > 1 for place in places}
    assert ("the answer" in places) == (repeats == 6)


@pytest.mark.parametrize(
    ("name", "answer", "verdict"),
    [
        (
            "TestDFSIO_results.log",
            "nothing to compare; test=write: write bandwidth is 33.4 MB/s (n=1: no interval);"
            " test=read: read bandwidth is 125 MB/s (n=1: no interval)",
            # The tests are not compared, so their order does not matter.
            Verdict.VALID,
        ),
        (
            "hyperfine.json",
            "time is 21.8 ms with sleep 0.02, 11.5 ms with sleep 0.01 (n=5: no interval, no claim possible",
            Verdict.UNCHECKED,
        ),
    ],
)
def test_import_without_comparison_states_figures(name: str, answer: str, verdict: Verdict) -> None:
    judgement = judge_results(ResultSet(name, [run.result for run in read_file(FIXTURES / name, {})]))
    assert judgement.answer.startswith(answer)
    assert judgement.verdict == verdict


def texts_of(judgement: Judgement, metric: str) -> set[str]:
    """All texts of a metric's figures, except in single trials."""
    figures = collect_figures(judgement).items()
    return {
        place.text
        for (variant, name), places in figures
        if name == metric and not any(token.startswith("trial=") for token in variant)
        for place in places
    }


def judge_late_trials() -> Judgement:
    """Trials at a rate whose latencies are upper bounds, because the generator was late."""

    def damage(trial: TrialResult) -> TrialResult:
        noise = 1 + 0.01 * (trial.repeat % 3)
        late = set_figures(
            due=100_000, censored=0, late__generator=400, read__p99=3e7 * noise, read__lower__p99=2e7 * noise
        )
        return replace(late(trial), loop="open")

    return judge_results(experiment(damage, question=Question(metrics=("read.p99", "throughput"))))


def test_upper_bound_has_one_value() -> None:
    judgement = judge_late_trials()
    assert find_conflicts(judgement) == []
    texts = texts_of(judgement, "read p99")
    assert texts
    assert all(text.startswith("at most ") for text in texts)


def test_pages_made_dirty_are_not_device_bytes() -> None:
    def serve(trial: TrialResult) -> TrialResult:
        served = {"server.memory_max": 1e9, "server.written": 487e6, "device.written": 23e6}
        figures = {metric: Value(metric, number, "B", 1) for metric, number in served.items()}
        return replace(trial, values={**trial.values, **figures})

    judgement = judge_results(experiment(serve))
    assert find_conflicts(judgement) == []
    assert texts_of(judgement, "written") == {"23.0 MB"}
    assert texts_of(judgement, "pages dirtied") == {"487 MB"}


def test_second_value_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = intervals.mark
    monkeypatch.setattr(intervals, "mark", lambda view, cell: {**mark(view, cell), "figure": "1.00 op/s"})
    assert any("throughput of system=lmdb" in line for line in find_conflicts(judge_results(experiment())))


def test_second_ratio_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge_results(experiment())
    ratios = [places for (_, metric), places in collect_figures(judgement).items() if metric == "throughput ratio"]
    names = {"page's table throughput", "the answer's table", "the JSON output", "terminal's table"}
    assert [{place.where for place in places} for places in ratios] == [names]
    render_ratio = comparison.render_ratio
    monkeypatch.setattr(
        comparison, "render_ratio", lambda pair: render_ratio(replace(pair, ratio=replace(pair.ratio, value=1.5)))
    )
    assert any("throughput ratio" in line for line in find_conflicts(judgement))


def test_second_figure_against_load_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = scaling.measure
    monkeypatch.setattr(scaling, "measure", lambda *place: [{**row, "figure": "1.00 ns"} for row in measure(*place)])
    assert any("in chart scaling" in line for line in find_conflicts(report_support.scaling()))


def test_figure_only_in_the_answer_is_detected() -> None:
    judgement = judge_results(experiment(question=Question(metrics=("read.p99",))))
    assert find_unsupported(judgement) == []
    answer = f"{judgement.answer}; read p99 is 99.9 ms"
    assert find_unsupported(replace(judgement, answer=answer)) == ["99.9 ms"]


def test_wrong_outage_in_the_answer_is_detected() -> None:
    question, *rows = map(json.loads, next(path for path in KINDS if path.stem == "faults").read_text().splitlines())
    trials = [TrialResult.from_json(row) for row in rows]
    judgement = judge_results(ResultSet("faults", trials, Question(metrics=tuple(question["metrics"]))))
    assert find_unsupported(replace(judgement, answer=judgement.answer.replace("6.82 s", "6.92 s"))) == ["6.92 s"]


def test_second_interval_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = intervals.mark
    monkeypatch.setattr(intervals, "mark", lambda view, cell: {**mark(view, cell), "interval": "1.00 – 2.00 op/s"})
    assert any("throughput interval of" in line for line in find_conflicts(judge_results(experiment())))


def test_rounded_texts_agree() -> None:
    assert agree("1.05 GB/s", "1,048.6 MB/s")
    assert agree("1,770 op/s", "1,770.70 op/s")
    assert agree("27.3 ms", "27,341 µs")
    assert not agree("487 MB", "23 MB")
    assert not agree("1.84 – 26.5 µs", "26.5 µs")
    assert not agree("1.05 GB/s", "1.05 GB")
    assert not agree("at most 1.05 GB/s", "1.05 GB/s")
