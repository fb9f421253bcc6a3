"""What an honest judge has to say of an experiment, and whether it does.

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
    """What the judge says of one experiment."""

    results: ResultSet
    metric: str
    # Which comparison is meant where there are several: the contender, the context.
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement."""
        return judge_results(self.results)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison that is meant."""
        found = [
            each
            for each in self.judgement.comparisons
            if each.metric == self.metric
            and self.contender in (None, dict(each.contender.variant).get(each.by))
            and self.context.items() <= dict(each.context).items()
        ]
        return found[0] if found else None

    @property
    def claim(self) -> str:
        """What is claimed, `absent` without a comparison."""
        return "absent" if self.comparison is None else self.comparison.claim

    @property
    def winner(self) -> Scalar | None:
        """The side that is said to be better."""
        if self.comparison is None or self.claim not in ("better", "worse"):
            return None
        side = self.comparison.contender if self.claim == "better" else self.comparison.baseline
        return dict(side.variant)[self.comparison.by]

    @property
    def fired(self) -> dict[str, str]:
        """The checks that fired, each with its worst severity."""
        worst: dict[str, Any] = {}
        for each in self.judgement.all_findings:
            worst[each.check] = max(worst.get(each.check, each.severity), each.severity, key=list(Severity).index)
        return {check: severity.name.lower() for check, severity in worst.items()}

    @cached_property
    def text(self) -> str:
        """Everything that a user can read of it: the answer, the messages, the terminal's tables and the report."""
        console = Console(file=io.StringIO(), width=400, highlight=False)
        projected = project_results(self.results, Projection())
        tables.show(console, judge_results(projected.results), projected)
        assert isinstance(console.file, io.StringIO)
        messages = [f"{each.message} {each.hint}" for each in self.judgement.all_findings]
        as_json = json.dumps(replace_infinite(judgement_document(self.judgement)), ensure_ascii=False, default=str)
        return "\n".join(
            [self.judgement.sentence, *messages, as_json, console.file.getvalue(), pull_request(self.judgement)]
        )

    def actual(self) -> str:
        """What the judge said, in one line."""
        ratio = "none" if self.comparison is None else self.comparison.ratio
        verdict = "" if self.comparison is None else self.comparison.verdict
        why = "" if self.comparison is None else self.comparison.why
        return f"{self.claim} {why} ratio={ratio} verdict={verdict} fired={self.fired} answer={self.judgement.answer!r}"


@dataclass(frozen=True)
class Expectation:
    """One thing that an honest judge must say."""

    text: str
    holds: Callable[[Judged], bool]
    # What it is about: `claim` and `verdict` are those of the comparison, `curve` and `whole` those of the experiment.
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A world, what goes wrong in it, and what must be said of it."""

    name: str
    results: Callable[[], ResultSet]
    expect: tuple[Expectation, ...]
    metric: str = "throughput"
    contender: Scalar | None = None
    context: Mapping[str, Scalar] = field(default_factory=dict)

    def judged(self) -> Judged:
        """What the judge says."""
        return Judged(self.results(), self.metric, self.contender, self.context)

    @property
    def decided(self) -> bool:
        """Whether it says what may be claimed, of the comparison or without one, and how far that may be trusted."""
        about = {what for each in self.expect for what in each.about}
        return {"claim", "verdict"} <= about or {"curve", "whole"} <= about


def wins(system: Scalar, ratio: float, spread: float = 0.03) -> Expectation:
    """A claim for this side. `ratio` is the true one, contender ÷ baseline, and lies in the interval."""

    def holds(judged: Judged) -> bool:
        found = judged.comparison
        if found is None or judged.winner != system or found.ratio.low is None or found.ratio.high is None:
            return False
        near = abs(found.ratio.value / ratio - 1) <= spread
        return near and found.ratio.low <= ratio <= found.ratio.high and not found.ratio.low <= 1 <= found.ratio.high

    return Expectation(f"{system} wins, ratio {ratio:g}", holds, CLAIM)


def wins_by_a_bound(system: Scalar, low: float, high: float) -> Expectation:
    """A claim for this side with a bound instead of a ratio."""

    def holds(judged: Judged) -> bool:
        bounds = [float(each) for each in re.findall(r"at least (\d+\.?\d*)", judged.text)]
        return judged.winner == system and any(low <= each <= high for each in bounds)

    return Expectation(f"{system} wins by at least {low:g} to {high:g}", holds, CLAIM)


def favours(system: Scalar) -> Expectation:
    """A claim for this side, as a ratio or as a bound."""
    return Expectation(f"{system} wins", lambda judged: judged.winner == system, CLAIM)


def no_claim() -> Expectation:
    """Whatever else is said, neither side wins, and they are not called equal."""
    return Expectation(
        "no claim", lambda judged: judged.winner is None and judged.claim not in ("same", "slight"), CLAIM
    )


def not_for(system: Scalar) -> Expectation:
    """Whatever else is said, this side does not win."""
    return Expectation(f"{system} does not win", lambda judged: judged.winner != system, CLAIM)


def not_trusted() -> Expectation:
    """No claim, or one that is not valid."""
    return Expectation(
        "no valid claim",
        lambda judged: judged.winner is None or judged.comparison is None or str(judged.comparison.verdict) != "valid",
        CLAIM,
    )


def unsure() -> Expectation:
    """Nothing is claimed and called valid, equality included."""
    return Expectation(
        "no valid claim",
        lambda judged: (
            judged.comparison is None
            or judged.claim not in ("better", "worse", "same", "slight")
            or str(judged.comparison.verdict) != "valid"
        ),
        CLAIM,
    )


def not_valid_for(system: str) -> Expectation:
    """This side is not said to win by a valid comparison."""
    return Expectation(
        f"no valid claim for {system}",
        lambda judged: (
            judged.winner != system or judged.comparison is None or str(judged.comparison.verdict) != "valid"
        ),
        CLAIM,
    )


def trusts_less() -> Expectation:
    """A check that could not run has not passed: the verdict counts those that could, or is not valid."""
    return Expectation(
        "not valid, or valid with the number of checks that could run",
        lambda judged: str(judged.judgement.verdict) != "valid" or "checks could run" in judged.text,
    )


def undecided() -> Expectation:
    """`~`: neither a difference nor equality was shown."""
    return Expectation(
        "undecided (~)",
        lambda judged: judged.claim == "none",
        CLAIM,
    )


def same() -> Expectation:
    """Shown to be equal for all that matters."""
    return Expectation(
        "no difference that matters",
        lambda judged: judged.claim == "same",
        CLAIM,
    )


def same_or_differs_little() -> Expectation:
    """Equal for all that matters; whether the rest is certain is left open."""
    return Expectation(
        "no difference that matters, or one that is less than matters",
        lambda judged: same().holds(judged) or differs_little().holds(judged),
        CLAIM,
    )


def differs_little() -> Expectation:
    """A difference that is certain and smaller than matters."""
    return Expectation(
        "differs, but by less than matters",
        lambda judged: judged.claim == "slight",
        CLAIM,
    )


def refused(*former: str) -> Expectation:
    """No claim, because of one of these checks: the comparison is invalid (docs/guides/reading-a-report.md)."""
    checks = [RENAMED.get(check, check) for check in former]
    return Expectation(
        f"refused by {' or '.join(checks)}",
        lambda judged: (
            judged.claim == "refused"
            and any(judged.fired.get(check) == "invalid" for check in checks)
            and verdict("invalid").holds(judged)
        ),
        ("claim", "verdict"),
    )


def absent() -> Expectation:
    """There is no such comparison; what then counts is the verdict of the whole."""
    return Expectation("no comparison", lambda judged: judged.comparison is None, ("curve",))


def unranked() -> Expectation:
    """No claim, as one side's figure is a bound."""
    return Expectation("not ranked, as a figure is a bound", lambda judged: judged.claim == "unranked", CLAIM)


def too_few() -> Expectation:
    """A ratio without a claim, as there are too few repeats."""
    return Expectation(
        "no claim possible, too few repeats",
        lambda judged: judged.claim == "impossible" and judged.comparison is not None and judged.comparison.p is None,
        CLAIM,
    )


def verdict(*names: str) -> Expectation:
    """The verdict of the comparison."""
    return Expectation(
        f"verdict {' or '.join(names)}",
        lambda judged: judged.comparison is not None and str(judged.comparison.verdict) in names,
        ("verdict",),
    )


def whole(*names: str) -> Expectation:
    """The verdict of the whole experiment, as docs/guides/reading-a-report.md defines it."""
    return Expectation(
        f"verdict of the whole {' or '.join(names)}",
        lambda judged: str(judged.judgement.verdict) in names,
        ("whole",),
    )


def fires(check: str, *severities: str) -> Expectation:
    """A check speaks up, by its present or a former name, with one of these severities or with any."""
    check = RENAMED.get(check, check)
    return Expectation(
        f"{check} fires {' or '.join(severities)}".strip(),
        lambda judged: check in judged.fired and (not severities or judged.fired[check] in severities),
    )


def silent(check: str) -> Expectation:
    """A check has nothing to say."""
    check = RENAMED.get(check, check)
    return Expectation(f"{check} is silent", lambda judged: check not in judged.fired)


def says(pattern: str, about: tuple[str, ...] = ()) -> Expectation:
    """A text that a user can read."""
    return Expectation(f"says {pattern!r}", lambda judged: re.search(pattern, judged.text) is not None, about)


VALID, UNCHECKED, SUSPECT = verdict("valid"), verdict("unchecked"), verdict("suspect")
