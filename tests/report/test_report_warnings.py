"""The findings in a report: each hint once, and none omitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import report_support
from loadstone.judge.finding import Effect, Finding, Severity
from loadstone.report import html_parts, markdown
from loadstone.report.terminal.tables import findings
from loadstone.report.warnings import warnings


def test_each_finding_has_its_hint() -> None:
    findings_of_check = (
        Finding("errors", Severity.INVALID, "reads failed", "mend the disk"),
        Finding("errors", Severity.INVALID, "updates failed", "mend the network"),
        Finding("noisy", Severity.NOTE, "a is noisy", "repeat"),
        Finding("noisy", Severity.NOTE, "b is noisy", "repeat"),
    )
    judgement = replace(report_support.single_variant(), findings=findings_of_check)
    # A hint shared by messages follows the last of them.
    assert [group.hints for group in warnings(judgement)] == [("mend the disk", "mend the network"), ("", "repeat")]


def worst_message(check: str, *findings: tuple[str, float, float]) -> str:
    """The message for findings of several trials: text, size and factor of drift."""
    trials = {
        f"redb-{number}": (
            Finding(check, Severity.SUSPECT, text, "wait", (f"redb-{number}",), effect=Effect(drifts=drift), size=size),
        )
        for number, (text, size, drift) in enumerate(findings, 1)
    }
    (group,) = warnings(replace(report_support.single_variant(), trials=trials))
    (message,) = group.messages
    return message


LOSS = Finding(
    "lost-writes", Severity.UNCHECKED, "2 writes are lost", "docs/concepts/guarantees.md lists the known settings"
)


@pytest.mark.parametrize(
    ("site", "root"),
    [("https://example.org/loadstone/", "https://example.org/loadstone"), ("{folder}", "file://{folder}")],
)
def test_findings_link_to_configured_site(
    site: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_DOCS", site.format(folder=tmp_path))
    root = root.format(folder=tmp_path)
    judgement = replace(report_support.single_variant(), findings=(LOSS,))
    printed = "\n".join(line.plain for line in findings(judgement))
    assert f"hint: {root}/concepts/guarantees.html lists" in printed
    assert f"page: {root}/checks/loss.html" in printed
    (group,) = (group for group in warnings(judgement) if group.check == LOSS.check)
    assert f'<a href="{root}/checks/loss.html"><code>docs/checks/loss.md</code></a>' in html_parts.render_warnings(
        group
    )
    assert f"([`docs/checks/loss.md`]({root}/checks/loss.html))" in markdown.render_warnings(group)


def test_findings_name_pages_without_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOADSTONE_DOCS", raising=False)
    judgement = replace(report_support.single_variant(), findings=(LOSS,))
    printed = "\n".join(line.plain for line in findings(judgement))
    assert "hint: docs/concepts/guarantees.md lists" in printed
    assert "page:" not in printed
    (group,) = (group for group in warnings(judgement) if group.check == LOSS.check)
    assert "<code>docs/checks/loss.md</code>" in html_parts.render_warnings(group)
    assert "<a " not in html_parts.render_warnings(group)


def test_worst_trial_is_named() -> None:
    low, high = "other processes used 9 % of 2 processors", "other processes used 80 % of 2 processors"
    shares = [(low, 0.09, 1.0), (high, 0.8, 1.0)]
    assert worst_message("interference", *shares, shares[0]) == (
        "redb-2: other processes used 80 % of 2 processors (the worst in 3 of 7 trials)"
    )
    # The rate that is missed by the largest share is the worst.
    missed = [("900 op/s was done of 1,000 op/s", 0.1, 1.0), ("1,300 op/s was done of 3,000 op/s", 0.57, 1.0)]
    assert worst_message("rate-not-held", *missed).startswith("redb-2: 1,300 op/s was done")


def test_notes_with_different_figures_are_similar() -> None:
    notes = [("12 reconnects", 0.0, 1.0), ("900 reconnects", 0.0, 1.0)]
    assert worst_message("interference", *notes).endswith("12 reconnects (similar in 2 of 7 trials)")
    assert worst_message("interference", notes[0], notes[0]).endswith("12 reconnects (in 2 of 7 trials)")


def test_worst_drift_is_the_largest_factor() -> None:
    drifts = [("p50 falls from 90 µs to 80 µs", 0.0, 1.1), ("p50 falls from 9 µs to 2 µs", 0.0, 4.5)]
    assert worst_message("not-steady", *drifts).startswith("redb-2: p50 falls from 9 µs to 2 µs")


def test_every_hint_of_many_failing_systems_is_printed() -> None:
    judgement = report_support.single_variant()
    trials = {
        name: (Finding("incomplete", Severity.SUSPECT, f"{name} failed", f"mend {name}", (name,)),) for name in "abcdef"
    }
    for whole in (False, True):
        printed = [line.plain for line in findings(replace(judgement, trials=trials), whole=whole)]
        assert [line for line in printed if "hint" in line] == [f"  hint: mend {name}" for name in "abcdef"]


def test_hint_of_further_messages_is_not_repeated() -> None:
    judgement = report_support.single_variant()
    trials = {
        name: (Finding("not-steady", Severity.SUSPECT, f"{name} rises", f"warm up; {n} of 6 are disturbed", (name,)),)
        for n, name in enumerate("abcdef")
    }
    (group,) = warnings(replace(judgement, trials=trials))
    assert (len(group.messages), group.more) == (4, 2)


def test_messages_with_new_hints_are_never_omitted() -> None:
    judgement = report_support.single_variant()
    trials = {
        name: (
            Finding("incomplete", Severity.SUSPECT, f"{name} failed: {n}", f"mend {'z' if n < 5 else name}", (name,)),
        )
        for n, name in enumerate("abcdefg")
    }
    (group,) = warnings(replace(judgement, trials=trials))
    assert group.messages[-2:] == ("f failed: 5", "g failed: 6")
    assert (group.hints[-2:], group.more) == (("mend f", "mend g"), 1)
