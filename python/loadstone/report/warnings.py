"""Findings by check, as readers need them: the worst message, the number of trials, a hint, and the check's page."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Judgement, VariantKey
from loadstone.judge.settings import DEFAULTS, PAGES
from loadstone.results.result_set import variant_key, variant_name

# The number of messages printed for a check, which may have one for each trial; fewer for notes. Further messages are
# printed only if their hints have new instructions.
MESSAGES_MAX = {severity: 2 if severity == Severity.NOTE else 4 for severity in Severity}
# The units that are scaled with their number.
SCALES = {name: factor for scale in (units.DURATIONS, units.SIZES) for factor, name in scale}
# The environment variable with the docs site, as an address or the folder of `make site`. Without a site, pages are
# named by their paths.
SITE = "LOADSTONE_DOCS"
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
# A separate number (not the 99 in p99), with its unit if the unit is scaled with the number.
NUMBER = re.compile(rf"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?![\w.]\d)(?: ({'|'.join(SCALES)})\b)?")


@dataclass(frozen=True)
class Warnings:
    """All findings of one check at one severity."""

    check: str
    severity: Severity
    messages: tuple[str, ...]
    # The hint of each message; empty if the next message has the same hint.
    hints: tuple[str, ...]
    # The number of further messages; each has the same instruction as a printed message.
    more: int
    # The number of affected trials.
    trials: int

    @property
    def label(self) -> str:
        """The severity as a word."""
        return self.severity.name.lower()

    @property
    def page(self) -> str:
        """The path of the check's page in the docs; empty for a note that does not belong to a check."""
        return f"docs/checks/{PAGES.get(self.check, self.check)}.md" if self.check in DEFAULTS else ""


def page_address(page: str) -> str | None:
    """The address of a page of the docs on the configured site; None without a site."""
    match, site = PAGE.fullmatch(page), os.environ.get(SITE)
    if not site or not match:
        return None
    root = site.rstrip("/") if "://" in site else Path(site).expanduser().resolve().as_uri()
    return f"{root}/{match[1]}.html"


def replace_pages(text: str) -> str:
    """Text in which the paths of pages become addresses, if a site is configured."""
    return PAGE.sub(lambda match: page_address(match[0]) or match[0], text)


def warnings(judgement: Judgement, *, whole: bool = False) -> list[Warnings]:
    """The findings by check and severity, the most severe first.

    Of messages that differ only in their numbers, only the worst is kept, unless `whole` is set.
    """
    owners = name_owners(judgement)
    by_check: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in judgement.all_findings:
        by_check.setdefault((finding.check, finding.severity), []).append(finding)
    groups = []
    of_answer = {finding for search in judgement.searches for finding in search.findings}
    for (check, severity), findings in by_check.items():
        lines = (
            [(name_source(finding, owners.get(finding, "")), finding.hint) for finding in findings]
            if whole
            else list(worst_messages(findings, owners, judgement))
        )
        # Readers find the reason for the verdict on a search among the warnings.
        behind = [finding for finding in findings if finding in of_answer]
        if behind and not whole:
            worst = max(behind, key=magnitude)
            message = name_source(worst, owners.get(worst, ""))
            if not any(line.startswith(message) for line, _ in lines):
                lines.insert(0, (message, worst.hint))
        lines = [(message, replace_pages(hint)) for message, hint in dict.fromkeys(lines)]
        content = lines if whole else list(select_lines(lines, MESSAGES_MAX[severity]))
        hints = [hint for _, hint in content]
        # A hint follows the last message that has it.
        hints = [hint if hint != following else "" for hint, following in zip(hints, [*hints[1:], None], strict=True)]
        trials = {trial for finding in findings for trial in finding.trials}
        messages = tuple(message for message, _ in content)
        groups.append(Warnings(check, severity, messages, tuple(hints), len(lines) - len(content), len(trials)))
    return groups


def select_lines(lines: Sequence[tuple[str, str]], most: int) -> Iterator[tuple[str, str]]:
    """The first `most` messages with their hints, and each later message whose hint has a new instruction."""
    instructions = {""}
    for number, (message, hint) in enumerate(lines):
        instruction = hint.partition("; ")[0]
        if number < most or instruction not in instructions:
            yield message, hint
        instructions.add(instruction)


def name_owners(judgement: Judgement) -> dict[Finding, str]:
    """The name of the variant or context that a finding concerns, if there are several variants or contexts."""
    variants = judgement.variants if len(judgement.variants) > 1 else {}
    owners = {finding: variant_name(key) for key, every in variants.items() for finding in every}
    places: dict[Finding, set[VariantKey]] = {}
    for comparison in judgement.comparisons:
        for finding in comparison.findings:
            places.setdefault(finding, set()).add(comparison.context)
    if len({comparison.context for comparison in judgement.comparisons}) > 1:
        variant_of = {trial.trial: variant_key(trial.config) for trial in judgement.results.trials}
        for finding, contexts in places.items():
            # A finding on the trials of one side concerns this side, not the context.
            if len(contexts) == 1 and len({variant_of.get(trial) for trial in finding.trials}) > 1:
                owners.setdefault(finding, variant_name(*contexts))
    return owners


def worst_messages(
    findings: Sequence[Finding], owners: Mapping[Finding, str], judgement: Judgement
) -> Iterator[tuple[str, str]]:
    """Of messages that differ only in their numbers, the worst, with its hint; the most frequent form comes first."""
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        alike.setdefault(NUMBER.sub("#", finding.message), []).append(finding)
    every = len(judgement.results.trials)

    for group in sorted(alike.values(), key=count_trials, reverse=True):
        worst = max(group, key=magnitude)
        message = name_source(worst, owners.get(worst, ""))
        extent = describe_extent(worst, group, every) if len(group) > 1 else ""
        yield f"{message} ({extent})" if extent else message, worst.hint


def describe_extent(chosen: Finding, group: Sequence[Finding], every: int | None) -> str:
    """The number of trials that findings concern, and how the chosen finding compares with the other findings: `the
    worst in 3 of 7 trials`.

    Without `every`, these are the trials behind the answer of a search. Empty if the findings concern a single trial.
    """
    count, sizes = count_trials(group), [*map(magnitude, group)]
    if count < 2:
        return ""
    is_worst = magnitude(chosen) == max(sizes) > min(sizes)
    place = "the worst in" if is_worst else "in" if len({item.message for item in group}) == 1 else "similar in"
    if every is None:
        return f"{place} {count:,} trials behind the answer"
    return f"{place} {f'all {every:,}' if count == every else f'{count:,} of {every:,}'} trials"


def count_trials(findings: Sequence[Finding]) -> int:
    """The number of trials that findings concern."""
    return len({trial for finding in findings for trial in finding.trials})


def magnitude(finding: Finding) -> float:
    """The magnitude of a finding, to compare findings of the same form."""
    effect = finding.effect
    known = [finding.size, effect.drifts, effect.understates]
    return next((figure for figure, least in zip(known, (0, 1, 1), strict=True) if least < figure < math.inf), 0.0)


def name_source(finding: Finding, variant: str) -> str:
    """A finding's message, preceded by its trial or variant unless the message names it."""
    whose = finding.trials[0] if len(finding.trials) == 1 else variant
    is_named = not whose or re.search(rf"(?<![\w.]){re.escape(whose)}(?![\w.])", finding.message)
    return finding.message if is_named else f"{whose}: {finding.message}"


def list_unavailable_checks(judgement: Judgement) -> list[str]:
    """The checks that could not run, each with its reason: `clock (the clock was not compared with another clock)`."""
    reasons: dict[str, dict[str, None]] = {}
    for check in judgement.not_looked:
        reasons.setdefault(check.reason, {})[check.check] = None
    return [f"{units.list_items([*checks], len(checks))} ({reason})" for reason, checks in reasons.items()]
