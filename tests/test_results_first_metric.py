"""Which figure decides when there are enough repeats."""

from __future__ import annotations

from dataclasses import replace

from judge_support import experiment
from loadstone.results.result_set import first_metric


def test_throughput_decides_in_a_closed_loop() -> None:
    assert first_metric(experiment().trials, ()) == "throughput"


def test_a_latency_decides_at_a_rate() -> None:
    at_a_rate = [replace(trial, loop="open") for trial in experiment().trials]
    assert first_metric(at_a_rate, ()) == "read.p99"
    assert first_metric(at_a_rate, ("throughput",)) == "throughput"


def test_the_first_metric_that_is_compared_decides_if_it_was_measured() -> None:
    assert first_metric(experiment().trials, ("insert.p99", "read.p99.9")) == "read.p99.9"
    assert first_metric(experiment().trials, ("insert.p99",)) == "throughput"
    assert first_metric([], ()) == "throughput"
