"""The time series of a single run gives findings and an interval within the run."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from judge_support import make_series, set_figures, sound
from lab_support import ROOT
from loadstone.importers.read import read_file
from loadstone.judge.findings import judge_trial
from loadstone.judge.judge import judge_results
from loadstone.judge.settings import Settings
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Series
from loadstone.statistics.autocorrelation import run_mean


def make_seconds(rates: list[float], last: float = 1.0) -> Series:
    """A time series with intervals of one second; the last interval may be shorter."""
    return Series(tuple(float(i) for i in range(len(rates))), (*[1.0] * (len(rates) - 1), last), tuple(rates))


def test_error_bars_grow_with_autocorrelation() -> None:
    draw = random.Random(5)
    noise = [draw.gauss(0, 10) for _ in range(300)]
    alike = [1000.0]
    for deviation in noise:
        alike.append(1000 + 0.9 * (alike[-1] - 1000) + deviation * (1 - 0.81) ** 0.5)
    independent = run_mean(make_seconds([1000 + deviation for deviation in noise]).complete_rates)
    correlated = run_mean(make_seconds(alike).complete_rates)
    assert independent.relative_width is not None
    assert correlated.relative_width is not None
    assert correlated.relative_width > 2 * independent.relative_width
    assert correlated.n < independent.n / 4


def test_short_series_and_partial_interval_are_ignored() -> None:
    assert run_mean(make_seconds([1000.0, 1001.0, 999.0]).complete_rates).low is None
    draw = random.Random(6)
    rates = [draw.gauss(1000, 10) for _ in range(40)]
    assert run_mean(make_seconds([*rates, 3.0], last=0.2).complete_rates) == run_mean(
        make_seconds(rates).complete_rates
    )


def test_imported_run_with_status_lines_has_error_bars() -> None:
    (log,) = read_file(ROOT / "tests/fixtures/imports/cassandra-stress-write.txt", {})
    assert log.series is not None
    results = ResultSet(name="log", trials=[log.result], question=Question(), series={log.result.trial: log.series}.get)
    (run,) = judge_results(results).within.values()
    assert run.low is not None
    assert run.high is not None
    assert run.low < run.value < run.high
    assert run.value == pytest.approx(log.result.value("throughput"), rel=0.1)


def test_steep_trend_does_not_begin_at_zero() -> None:
    draw = random.Random(8)
    tail = [1e6 * (1 + draw.random() / 50) + max(at - 40, 0) * 2e6 for at in range(60)]
    series = replace(make_seconds([1000.0] * 60), p99_ns=tuple(tail))
    messages = [
        finding.message for finding in judge_trial(set_figures()(sound()), series, Settings.from_question(Question()))
    ]
    (message,) = (text for text in messages if text.startswith("the p99"))
    assert " from 0 " not in message
    assert "rises from 1" in message


def test_premature_window_has_a_hint_with_warm_up() -> None:
    draw = random.Random(7)
    rates = [draw.gauss(1000, 10) for _ in range(60)]
    late = [400 + 10 * i for i in range(12)] + rates
    (finding,) = judge_trial(set_figures()(sound()), make_seconds(late), Settings.from_question(Question()))
    # MSER-5 uses batches of five seconds; the third batch contains the end of the rise.
    assert finding.hint == "extend the warm-up by 15 s: the remaining window was steady (MSER-5)"
    falling = [1500 - 10 * i + draw.gauss(0, 5) for i in range(60)]
    (finding,) = judge_trial(set_figures()(sound()), make_seconds(falling), Settings.from_question(Question()))
    assert finding.hint == "warm up longer, measure longer, or let the store settle first"
    assert (
        list(judge_trial(set_figures()(sound()), make_series(tuple(rates)), Settings.from_question(Question()))) == []
    )


def test_warm_up_hint_uses_requested_thresholds() -> None:
    draw = random.Random(7)
    # After the warm-up, throughput rises by 4 %: less than the default threshold.
    late = [400 + 10 * i for i in range(12)] + [draw.gauss(1000 + 40 * at / 60, 3) for at in range(60)]
    for checks, hint in (
        ({}, "extend the warm-up by 35 s: the remaining window was steady (MSER-5)"),
        ({"not-steady": {"effect": 0.02}}, "warm up longer, measure longer, or let the store settle first"),
    ):
        settings = Settings.from_question(Question(checks=checks))
        (finding,) = judge_trial(set_figures()(sound()), make_seconds(late), settings)
        assert finding.hint == hint
