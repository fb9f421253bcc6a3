"""The report's statements on the warm-up found by a pilot block."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

import report_support
from loadstone.judge.judgement import Judgement
from loadstone.report.sections import gist
from loadstone.report.view import View
from loadstone.results.trial_result import TrialResult
from loadstone.runner import pilot


def summarize_pilot(judgement: Judgement, steady_seconds: dict[str, float]) -> str:
    """The summary of results whose pilot block, capped at 3 s, had two variants of each system."""
    trials = [
        TrialResult(f"{system}-{clients}", {"system": system, "clients": clients, "scale": 1}, 0, {})
        for system in steady_seconds
        for clients in (1, 2)
    ]
    groups = tuple(
        pilot.Group((f"{system}-1", f"{system}-2"), seconds, None, 1.5 * seconds)
        for system, seconds in steady_seconds.items()
    )
    result = pilot.PilotResult(*pilot.warm_up(groups, 3.0)[:1], 3.0, pilot.warm_up(groups, 3.0)[1], None, groups)
    results = replace(judgement.results, pilot=asdict(result), pilots=trials)
    return ", ".join(gist(View(replace(judgement, results=results))))


@pytest.mark.parametrize(
    ("steady_seconds", "text"),
    [
        ({"a": 1.0, "b": 2.0}, "3 s of warm-up, found by a pilot block, "),
        ({"a": 1.0, "b": 3.0}, "3 s of warm-up, found by a pilot block and capped, although b needs 4.5 s, "),
        ({"a": 3.0}, "3 s of warm-up, found by a pilot block and capped, although every variant needs 4.5 s, "),
    ],
)
def test_limited_warm_up_names_the_systems_needing_more(steady_seconds: dict[str, float], text: str) -> None:
    result = summarize_pilot(report_support.single_variant(), steady_seconds)
    assert text in result
    assert ("capped" in result) == ("capped" in text)
