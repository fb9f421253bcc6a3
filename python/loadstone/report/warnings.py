"""Findings by check, as a reader needs them: what is wrong, in how many trials, what to do, where to read more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Judgement
from loadstone.judge.settings import PAGES
from loadstone.results.result_set import variant_name

# The most messages printed of a check; there may be one for each trial. Notes change no verdict.
MESSAGES_MAX = {severity: 2 if severity == Severity.NOTE else 4 for severity in Severity}
# A separate number (not the 99 of p99), with its unit where both are scaled together.
SCALES = {name: factor for scale in (units.DURATIONS, units.SIZES) for factor, name in scale}
NUMBER = re.compile(rf"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?![\w.]\d)(?: ({'|'.join(SCALES)})\b)?")


@dataclass(frozen=True)
class Warnings:
    """All findings of one check at one severity."""

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
        return self.severity.name.lower()

    @property
    def page(self) -> str:
        """The check's page, relative to the documentation's root."""
        return f"docs/checks/{PAGES.get(self.check, self.check)}.md"


def warnings(judgement: Judgement, *, whole: bool = False) -> list[Warnings]:
    """By check and severity, the worst first: messages that differ only in their numbers as one, or the `whole`."""
    variants = judgement.variants if len(judgement.variants) > 1 else {}
    whose = {finding: variant_name(key) for key, every in variants.items() for finding in every}
    by_check: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in judgement.all_findings:
        by_check.setdefault((finding.check, finding.severity), []).append(finding)
    found = []
    seen: set[str] = set()
    for (check, severity), same in by_check.items():
        messages = [named(each, whose.get(each, "")) for each in same] if whole else together(same, whose, judgement)
        messages = list(dict.fromkeys(messages))
        shown = messages if whole else messages[: MESSAGES_MAX[severity]]
        hints: dict[str, list[str]] = {}
        for hint in dict.fromkeys(finding.hint for finding in same if finding.hint):
            hints.setdefault(NUMBER.sub("#", hint), []).append(hint)
        trials = {trial for finding in same for trial in finding.trials}
        more = len(messages) - len(shown)
        # Each hint once, with the worst that it is for.
        advice = tuple(hint for hint in map(spanned, hints.values()) if hint not in seen)
        seen.update(advice)
        found.append(Warnings(check, severity, tuple(shown), more, advice, len(trials)))
    return found


def together(findings: Sequence[Finding], whose: Mapping[Finding, str], judgement: Judgement) -> Iterator[str]:
    """Messages that differ only in their numbers as one, with ranges and the number of trials; the most first."""
    alike: dict[tuple[str, frozenset[str]], list[Finding]] = {}
    names = {trial.trial: variant_name(trial.config) for trial in judgement.results.trials}
    for finding in findings:
        # Ranges over several variants would describe no variant.
        variants = frozenset(names.get(trial, "") for trial in finding.trials)
        alike.setdefault((NUMBER.sub("#", finding.message), variants), []).append(finding)
    every = len(judgement.results.trials)
    for same in sorted(alike.values(), key=lambda each: -len({trial for finding in each for trial in finding.trials})):
        trials = {trial for finding in same for trial in finding.trials}
        of = f" (in {len(trials):,} of {units.many(every, 'trial')})" if trials else ""
        several = spanned([finding.message for finding in same]) + of
        whole = [*{names.get(trial, "") for trial in trials}]
        variant = f"{whole[0]}: " if len(whole) == 1 and len(set(names.values())) > 1 else ""
        yield variant + several if len(same) > 1 else named(same[0], whose.get(same[0], ""))


def spanned(messages: Sequence[str]) -> str:
    """Messages of one form as one, `46–50 %` and `4 kB–2 MB` in place of each figure that differs."""
    columns = zip(*(NUMBER.finditer(message) for message in messages), strict=True)
    ranges = iter([span([(found[1], found[2] or "") for found in column]) for column in columns])
    return NUMBER.sub(lambda _: next(ranges), messages[0])


def span(figures: Sequence[tuple[str, str]]) -> str:
    """From the least figure to the largest, each a number and its unit."""
    ordered = sorted(set(figures), key=lambda each: float(each[0].replace(",", "")) * SCALES.get(each[1], 1))
    (low, low_unit), (high, unit) = ordered[0], ordered[-1]
    if len(ordered) == 1:
        return f"{high} {unit}".rstrip()
    first = low if unit == low_unit or low == "0" else f"{low} {low_unit}"
    return f"{first}–{high} {unit}".rstrip()


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
