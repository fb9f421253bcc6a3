"""The metric whose interval decides whether there are enough repeats."""

from __future__ import annotations

from dataclasses import replace

import pytest

import report_support
from conftest import FIXTURES
from judge_support import experiment, set_figures
from loadstone.importers.read import read_file
from loadstone.judge.judge import judge_results
from loadstone.report.sections import opening, sections
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet, deciding_metrics, first_metric, order_metrics
from loadstone.results.trial_result import TrialResult


def test_throughput_decides_in_a_closed_loop() -> None:
    assert first_metric(experiment().trials, ()) == "throughput"


def test_a_latency_decides_at_a_rate() -> None:
    at_a_rate = [replace(trial, loop="open") for trial in experiment().trials]
    assert first_metric(at_a_rate, ()) == "read.p99"
    assert first_metric(at_a_rate, ("throughput",)) == "throughput"


def test_listed_throughput_is_last_at_a_rate() -> None:
    at_a_rate = [replace(trial, loop="open") for trial in experiment().trials]
    assert order_metrics(at_a_rate, ("throughput", "read.p50", "read.p99")) == ("read.p50", "read.p99", "throughput")
    assert order_metrics(experiment().trials, ("throughput", "read.p50")) == ("throughput", "read.p50")


def test_unusual_operations_have_a_latency_at_a_rate() -> None:
    scans = [
        replace(set_figures(without=("read.p99", "read.p50"), all__p99=2e6)(trial), loop="open")
        for trial in experiment().trials
    ]
    assert first_metric(scans, ()) == "all.p99"


@pytest.mark.parametrize(
    ("name", "metric", "panel"),
    [
        ("pgbench-rate.txt", "all.mean", "mean latency"),
        ("sysbench-rate.txt", "all.p95", "p95"),
        # A single run has a curve of percentiles instead of a single mark. In this file, the latencies of runs and
        # requests are equal.
        ("latte.json", "all.p99", "run, request"),
    ],
)
def test_few_statistics_include_a_latency_at_a_rate(name: str, metric: str, panel: str) -> None:
    judgement = judge_results(ResultSet(name, [run.result for run in read_file(FIXTURES / "imports" / name, {})]))
    assert judgement.results.deciding_metric == metric
    view = View(judgement)
    chart, _ = opening(view, sections(view))
    assert chart is not None
    assert chart.panels[0].title == panel


@pytest.mark.parametrize(("is_at_rate", "name"), [(False, "throughput-over-time"), (True, "latency-over-time")])
def test_single_run_is_charted_over_time(is_at_rate: bool, name: str) -> None:
    results = report_support.usual().results
    trial = replace(results.trials[0], loop="open" if is_at_rate else "closed")
    view = View(judge_results(replace(results, trials=[trial], planned={})))
    chart, _ = opening(view, sections(view))
    assert chart is not None
    assert chart.name == name


def test_latency_decides_where_requested_metrics_are_missing() -> None:
    at_a_rate = [replace(trial, loop="open") for trial in experiment().trials]
    assert order_metrics(at_a_rate, ("scan.p99",)) == ("read.p99", "read.p50", "throughput")
    assert order_metrics(at_a_rate, ("throughput",)) == ("throughput",)


def test_one_metric_decides_stopping_claim_and_chart() -> None:
    trials = [replace(trial, loop="open") for trial in experiment().trials]
    results = replace(experiment(), trials=trials, question=Question(metrics=("throughput", "read.p99"), until=0.2))
    judgement = judge_results(results)
    stopping = next(iter(deciding_metrics(trials, results.question.metrics, 0.2)))
    view = View(judgement)
    chart, _ = opening(view, sections(view))
    assert chart is not None
    assert [stopping, judgement.comparisons[0].metric, chart.panels[0].title] == ["read.p99", "read.p99", "read p99"]


def test_first_compared_and_measured_metric_decides() -> None:
    assert first_metric(experiment().trials, ("insert.p99", "read.p99.9")) == "read.p99.9"
    assert first_metric(experiment().trials, ("insert.p99",)) == "throughput"
    assert first_metric([], ()) == "throughput"


def test_judge_uses_a_figure_of_all_variants() -> None:
    # All trials run at a rate. rocksdb only updates, and its latency varies by more than the limit.
    def change_trial(trial: TrialResult) -> TrialResult:
        trial = replace(trial, loop="open")
        if trial.config["system"] == "lmdb":
            return trial
        return set_figures(without=("read.p99",), update__p99=3e7 * (1 + trial.repeat / 10))(trial)

    judgement = judge_results(replace(experiment(change_trial), question=Question(until=0.2)))
    noisy = [finding for findings in judgement.variants.values() for finding in findings if finding.check == "noisy"]
    assert [finding.metric for finding in noisy] == ["update.p99"]


def test_each_figure_that_until_names_must_be_narrow() -> None:
    def spread(trial: TrialResult) -> TrialResult:
        return set_figures(throughput=1e4 * (1 + trial.repeat / 100), read__p99=1e6 * (1 + trial.repeat / 10))(trial)

    limits = {"throughput": 0.2, "read.p99": 0.2, "scan.p99": 0.01}
    judgement = judge_results(replace(experiment(spread), question=Question(until=limits)))
    noisy = {
        finding.metric for findings in judgement.variants.values() for finding in findings if finding.check == "noisy"
    }
    assert noisy == {"read.p99"}


def test_default_metrics_are_shared_by_variants() -> None:
    one_sided = ("read.p99", "read.p50")
    trials = [
        set_figures(without=one_sided if index % 2 else (), write__p99=2e6, sync__p50=1e6)(
            replace(trial, config={"variant": index % 2})
        )
        for index, trial in enumerate(experiment().trials)
    ]
    assert order_metrics(trials, ()) == ("throughput", "write.p99", "sync.p50")
    assert order_metrics(trials, ("read.p99",)) == ("read.p99",)
    assert order_metrics(trials[:1], ()) == ("throughput", "read.p99", "write.p99", "read.p50", "sync.p50")


def test_blocks_of_different_sizes_have_bandwidths() -> None:
    trials = [
        replace(
            set_figures(read__bandwidth=1e6)(trial), config={"variant": size}, facts={**trial.facts, "block_size": size}
        )
        for trial, size in zip(experiment().trials, ("4k", "64k"), strict=False)
    ]
    assert order_metrics(trials, ()) == ("throughput", "read.p99", "read.p50", "read.bandwidth")
    assert "read.bandwidth" not in order_metrics(trials[:1], ())
