"""The judgement that an honest judge would return on an experiment, and whether Loadstone's judge agrees.

The expectations follow from the design and the documentation (docs/checks, docs/concepts, docs/guides), not from the
judge's code.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.console import Console

from loadstone.commands.show_results import judgement_document, replace_infinite
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Comparison, Judgement
from loadstone.judge.settings import RENAMED
from loadstone.report.terminal import tables
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from report_support import pull_request

CLAIM = ("claim",)


@dataclass(frozen=True)
class Judged:
    """The judgement of one experiment."""

    results: ResultSet
    metric: str
    # The comparison to check if there are several: the contender, the context.
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def judgement(self) -> Judgement:
        return judge_results(self.results)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison to check."""
        results = [
            value
            for value in self.judgement.comparisons
            if value.metric == self.metric
            and self.contender in (None, dict(value.contender.variant).get(value.by))
            and self.context.items() <= dict(value.context).items()
        ]
        return results[0] if results else None

    @property
    def claim(self) -> str:
        """The claim; `absent` if there is no comparison."""
        return "absent" if self.comparison is None else self.comparison.claim

    @property
    def winner(self) -> Scalar | None:
        """The side that the claim calls better."""
        if self.comparison is None or self.claim not in ("better", "worse"):
            return None
        side = self.comparison.contender if self.claim == "better" else self.comparison.baseline
        return dict(side.variant)[self.comparison.by]

    @property
    def firing_checks(self) -> dict[str, str]:
        """The checks that fired, each with its highest severity."""
        worst: dict[str, Any] = {}
        for finding in self.judgement.all_findings:
            worst[finding.check] = max(
                worst.get(finding.check, finding.severity), finding.severity, key=list(Severity).index
            )
        return {check: severity.name.lower() for check, severity in worst.items()}

    @cached_property
    def text(self) -> str:
        """The text for users: the answer, the messages, the JSON output, the terminal's tables, the Markdown report."""
        console = Console(file=io.StringIO(), width=400, highlight=False)
        projected = project_results(self.results, Projection())
        tables.show(console, judge_results(projected.results), projected)
        assert isinstance(console.file, io.StringIO)
        messages = [f"{finding.message} {finding.hint}" for finding in self.judgement.all_findings]
        as_json = json.dumps(replace_infinite(judgement_document(self.judgement)), ensure_ascii=False, default=str)
        return "\n".join(
            [self.judgement.sentence, *messages, as_json, console.file.getvalue(), pull_request(self.judgement)]
        )

    def actual(self) -> str:
        """The judge's result in one line."""
        ratio = "none" if self.comparison is None else self.comparison.ratio
        verdict = "" if self.comparison is None else self.comparison.verdict
        why = "" if self.comparison is None else self.comparison.why
        result = f"{self.claim} {why} ratio={ratio} verdict={verdict}"
        return f"{result} fired={self.firing_checks} answer={self.judgement.answer!r}"


@dataclass(frozen=True)
class Expectation:
    """One property of an honest judgement."""

    text: str
    holds: Callable[[Judged], bool]
    # The parts of the judgement that the expectation concerns: `claim`, `verdict` (of the comparison), `curve`, `whole`
    # (experiment).
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A scenario, its disturbance, and the expected judgement."""

    name: str
    results: Callable[[], ResultSet]
    expect: tuple[Expectation, ...]
    metric: str = "throughput"
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    def judge(self) -> Judged:
        """The judgement."""
        return Judged(self.results(), self.metric, self.contender, self.context)

    @property
    def is_decided(self) -> bool:
        """Whether the case determines a claim, with or without a comparison, and the trust in this claim."""
        about = {what for expectation in self.expect for what in expectation.about}
        return {"claim", "verdict"} <= about or {"curve", "whole"} <= about


def wins(system: Scalar, ratio: float, spread: float = 0.03) -> Expectation:
    """Expects a claim for this side, with the true ratio (contender ÷ baseline) in the interval."""

    def holds(judged: Judged) -> bool:
        comparison = judged.comparison
        if (
            comparison is None
            or judged.winner != system
            or comparison.ratio.low is None
            or comparison.ratio.high is None
        ):
            return False
        near = abs(comparison.ratio.value / ratio - 1) <= spread
        return (
            near
            and comparison.ratio.low <= ratio <= comparison.ratio.high
            and not comparison.ratio.low <= 1 <= comparison.ratio.high
        )

    return Expectation(f"{system} wins, ratio {ratio:g}", holds, CLAIM)


def wins_by_a_bound(system: Scalar, low: float, high: float) -> Expectation:
    """Expects a claim for this side with a bound instead of a ratio."""

    def holds(judged: Judged) -> bool:
        bounds = [float(bound) for bound in re.findall(r"at least (\d+\.?\d*)", judged.text)]
        return judged.winner == system and any(low <= bound <= high for bound in bounds)

    return Expectation(f"{system} wins by at least {low:g} to {high:g}", holds, CLAIM)


def favours(system: Scalar) -> Expectation:
    """Expects a claim for this side, as a ratio or as a bound."""
    return Expectation(f"{system} wins", lambda judged: judged.winner == system, CLAIM)


def expect_no_claim() -> Expectation:
    """Expects that neither side wins, and that the sides are not called equal."""
    return Expectation(
        "no claim", lambda judged: judged.winner is None and judged.claim not in ("same", "slight"), CLAIM
    )


def expect_no_win(system: Scalar) -> Expectation:
    """Expects that this side does not win."""
    return Expectation(f"{system} does not win", lambda judged: judged.winner != system, CLAIM)


def expect_no_trust() -> Expectation:
    """Expects no claim, or a claim that is not valid."""
    return Expectation(
        "no valid claim",
        lambda judged: judged.winner is None or judged.comparison is None or str(judged.comparison.verdict) != "valid",
        CLAIM,
    )


def unsure() -> Expectation:
    """Expects no valid claim, not even a claim of equality."""
    return Expectation(
        "no valid claim",
        lambda judged: (
            judged.comparison is None
            or judged.claim not in ("better", "worse", "same", "slight")
            or str(judged.comparison.verdict) != "valid"
        ),
        CLAIM,
    )


def expect_no_valid_win(system: str) -> Expectation:
    """Expects that no valid comparison shows a win for this side."""
    return Expectation(
        f"no valid claim for {system}",
        lambda judged: (
            judged.winner != system or judged.comparison is None or str(judged.comparison.verdict) != "valid"
        ),
        CLAIM,
    )


def trusts_less() -> Expectation:
    """Expects a verdict that is not valid, or that states how many checks ran."""
    return Expectation(
        "not valid, or valid with the number of checks that ran",
        lambda judged: str(judged.judgement.verdict) != "valid" or "checks ran" in judged.text,
    )


def expect_undecided() -> Expectation:
    """Expects `~`: neither a difference nor equality is shown."""
    return Expectation(
        "undecided (~)",
        lambda judged: judged.claim == "none",
        CLAIM,
    )


def expect_same() -> Expectation:
    """Expects a claim of equality within the margin that matters."""
    return Expectation(
        "no difference that matters",
        lambda judged: judged.claim == "same",
        CLAIM,
    )


def expect_same_or_slight() -> Expectation:
    """Expects a claim of equality within the margin that matters, or of a slight difference."""
    return Expectation(
        "no difference, or a difference too small to matter",
        lambda judged: expect_same().holds(judged) or differs_little().holds(judged),
        CLAIM,
    )


def differs_little() -> Expectation:
    """Expects a significant difference that is smaller than the margin that matters."""
    return Expectation(
        "a difference too small to matter",
        lambda judged: judged.claim == "slight",
        CLAIM,
    )


def expect_refusal(*former: str) -> Expectation:
    """Expects no claim, because one of these checks makes the comparison invalid (docs/guides/reading-a-report.md)."""
    checks = [RENAMED.get(check, check) for check in former]
    return Expectation(
        f"refused by {' or '.join(checks)}",
        lambda judged: (
            judged.claim == "refused"
            and any(judged.firing_checks.get(check) == "invalid" for check in checks)
            and verdict("invalid").holds(judged)
        ),
        ("claim", "verdict"),
    )


def absent() -> Expectation:
    """Expects that the comparison does not exist; the verdict of the experiment then counts."""
    return Expectation("no comparison", lambda judged: judged.comparison is None, ("curve",))


def expect_bound() -> Expectation:
    """Expects no claim, because one side's figure is a bound."""
    return Expectation("not ranked, as a figure is a bound", lambda judged: judged.claim == "unranked", CLAIM)


def too_few() -> Expectation:
    """Expects a ratio without a claim, because there are too few repeats."""
    return Expectation(
        "no claim possible, too few repeats",
        lambda judged: judged.claim == "impossible" and judged.comparison is not None and judged.comparison.p is None,
        CLAIM,
    )


def verdict(*names: str) -> Expectation:
    """Expects one of these verdicts on the comparison."""
    return Expectation(
        f"verdict {' or '.join(names)}",
        lambda judged: judged.comparison is not None and str(judged.comparison.verdict) in names,
        ("verdict",),
    )


def expect_overall(*names: str) -> Expectation:
    """Expects one of these verdicts on the whole experiment (docs/guides/reading-a-report.md)."""
    return Expectation(
        f"verdict of the whole {' or '.join(names)}",
        lambda judged: str(judged.judgement.verdict) in names,
        ("whole",),
    )


def fires(check: str, *severities: str) -> Expectation:
    """Expects that a check, given by its present or a former name, fires with one of these severities (none: any)."""
    check = RENAMED.get(check, check)
    return Expectation(
        f"{check} fires {' or '.join(severities)}".strip(),
        lambda judged: check in judged.firing_checks and (not severities or judged.firing_checks[check] in severities),
    )


def silent(check: str) -> Expectation:
    """Expects that a check does not fire."""
    check = RENAMED.get(check, check)
    return Expectation(f"{check} is silent", lambda judged: check not in judged.firing_checks)


def says(pattern: str, about: tuple[str, ...] = ()) -> Expectation:
    """Expects that the text for users matches this pattern."""
    return Expectation(f"says {pattern!r}", lambda judged: re.search(pattern, judged.text) is not None, about)


VALID, UNCHECKED, SUSPECT = verdict("valid"), verdict("unchecked"), verdict("suspect")
