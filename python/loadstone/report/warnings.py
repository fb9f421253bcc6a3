"""Findings by check, as a reader acts on them: what is wrong, in how many trials, what to do, where to read on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Judgement
from loadstone.results.result_set import variant_name

# Messages of a check that are printed; there may be one for each trial.
MESSAGES_MAX = 4
# A number that stands alone: not the 99 of p99.
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]\d)")
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


def warnings(judgement: Judgement, *, whole: bool = False) -> list[Warnings]:
    """By check and severity, the worst first: messages that differ in their numbers alone as one, or the `whole`."""
    variants = judgement.variants if len(judgement.variants) > 1 else {}
    whose = {finding: variant_name(key) for key, every in variants.items() for finding in every}
    by_check: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in judgement.all_findings:
        by_check.setdefault((finding.check, finding.severity), []).append(finding)
    found = []
    for (check, severity), same in by_check.items():
        messages = [named(each, whose.get(each, "")) for each in same] if whole else together(same, whose, judgement)
        messages = list(dict.fromkeys(messages))
        shown = messages if whole else messages[:MESSAGES_MAX]
        hints: dict[str, list[str]] = {}
        for hint in dict.fromkeys(finding.hint for finding in same if finding.hint):
            hints.setdefault(NUMBER.sub("#", hint), []).append(hint)
        trials = {trial for finding in same for trial in finding.trials}
        more = len(messages) - len(shown)
        advice = tuple(map(spanned, hints.values()))[:MESSAGES_MAX]
        found.append(Warnings(check, severity, tuple(shown), more, advice, len(trials)))
    return found


def together(findings: Sequence[Finding], whose: Mapping[Finding, str], judgement: Judgement) -> Iterator[str]:
    """Messages that differ in their numbers alone as one, with the ranges and the number of trials; the most first."""
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        alike.setdefault(NUMBER.sub("#", finding.message), []).append(finding)
    every = len(judgement.results.trials)
    for same in sorted(alike.values(), key=lambda each: -len({trial for finding in each for trial in finding.trials})):
        trials = {trial for finding in same for trial in finding.trials}
        if len(same) == 1:
            yield named(same[0], whose.get(same[0], ""))
        elif trials:
            of = f"(in {len(trials):,} of {units.many(every, 'trial')})"
            yield f"{spanned([finding.message for finding in same])} {of}"
        else:
            yield spanned([finding.message for finding in same])


def spanned(messages: Sequence[str]) -> str:
    """Messages of one form as one, `46–50 %` in place of each number that differs."""
    columns = zip(*(NUMBER.findall(message) for message in messages), strict=True)
    ranges = []
    for column in columns:
        ordered = sorted(set(column), key=lambda number: float(number.replace(",", "")))
        ranges.append(ordered[0] if len(ordered) == 1 else f"{ordered[0]}–{ordered[-1]}")
    parts = NUMBER.split(messages[0])
    return "".join(part + number for part, number in zip(parts, [*ranges, ""], strict=True))


def named(finding: Finding, variant: str) -> str:
    """A finding's message, with the trial or the variant that it is about, unless it names it."""
    whose = finding.trials[0] if len(finding.trials) == 1 else variant
    return finding.message if not whose or whose in finding.message else f"{whose}: {finding.message}"


def not_looked(judgement: Judgement) -> list[str]:
    """The checks that could not look, each with the reasons: `clock (the clock was not compared with another)`."""
    reasons: dict[str, dict[str, None]] = {}
    for each in judgement.not_looked:
        reasons.setdefault(each.reason, {})[each.check] = None
    return [f"{units.listed([*checks], len(checks))} ({reason})" for reason, checks in reasons.items()]
