"""Findings by check, as a reader acts on them: what is wrong, in how many trials, what to do, where to read on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Judgement
from loadstone.report.view import View

# Messages of a check that are printed; there may be one for each trial.
MESSAGES_MAX = 4
LABELS: Mapping[Severity, str] = {
    Severity.INVALID: "invalid",
    Severity.SUSPECT: "suspect",
    Severity.WITHHELD: "withheld",
    Severity.NOTE: "note",
}


@dataclass(frozen=True)
class Warnings:
    """All that one check had to say at one severity."""

    check: str
    severity: Severity
    messages: tuple[str, ...]
    # Messages beyond those.
    more: int
    hints: tuple[str, ...]
    # How many trials it concerns.
    trials: int

    @property
    def label(self) -> str:
        """The severity in a word."""
        return LABELS[self.severity]

    @property
    def page(self) -> str:
        """The check's page, relative to the documentation's root."""
        return f"docs/checks/{self.check}.md"


def warnings(view: View) -> list[Warnings]:
    """By check and severity, the worst first."""
    found: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in view.findings:
        found.setdefault((finding.check, finding.severity), []).append(finding)
    return [gathered(check, severity, findings) for (check, severity), findings in found.items()]


def gathered(check: str, severity: Severity, findings: list[Finding]) -> Warnings:
    """The findings of one check, alike ones once."""
    about: dict[str, set[str]] = {}
    for finding in findings:
        about.setdefault(finding.message, set()).update(finding.trials)
    messages = [message if len(names) != 1 else named(message, *names) for message, names in about.items()]
    hints = dict.fromkeys(finding.hint for finding in findings if finding.hint)
    trials = {trial for finding in findings for trial in finding.trials}
    shown = messages[:MESSAGES_MAX]
    return Warnings(check, severity, tuple(shown), len(messages) - len(shown), tuple(hints)[:MESSAGES_MAX], len(trials))


def named(message: str, trial: str) -> str:
    """A message on one trial, which it may name already."""
    return message if trial in message else f"{trial}: {message}"


def not_looked(judgement: Judgement) -> list[str]:
    """The checks that could not look, each with the reasons: `clock (the clock was not compared with another)`."""
    reasons: dict[str, dict[str, None]] = {}
    for each in judgement.not_looked:
        reasons.setdefault(each.reason, {})[each.check] = None
    return [f"{units.listed([*checks], len(checks))} ({reason})" for reason, checks in reasons.items()]
