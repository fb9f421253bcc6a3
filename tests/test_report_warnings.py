"""The findings as a reader gets them: each hint once, and none lost."""

from __future__ import annotations

from dataclasses import replace

import report_support
from loadstone.judge.finding import Finding, Severity
from loadstone.report.terminal.tables import findings
from loadstone.report.warnings import warnings


def test_a_hint_of_several_checks_stands_once_with_the_worst() -> None:
    same = "use another host"
    found = tuple(
        Finding(check, severity, f"{check} {severity.name}", same)
        for check in ("noisy", "stalled")
        for severity in (Severity.NOTE, Severity.INVALID)
    )
    judgement = replace(report_support.alone(), findings=found)
    assert [each.hints for each in warnings(judgement)] == [(same,), (), (), ()]


def test_every_hint_of_many_failing_systems_is_printed() -> None:
    judgement = report_support.alone()
    trials = {
        name: (Finding("incomplete", Severity.SUSPECT, f"{name} failed", f"mend {name}", (name,)),) for name in "abcdef"
    }
    for whole in (False, True):
        printed = [line.plain for line in findings(replace(judgement, trials=trials), whole=whole)]
        assert [line for line in printed if "hint" in line] == [f"  hint: mend {name}" for name in "abcdef"]
