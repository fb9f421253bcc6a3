"""A judgement: everything that the judge found in a result set, ready for output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from loadstone.format import units
from loadstone.judge.figures import is_latency, lower_name
from loadstone.judge.finding import UNKNOWN_OF_BOTH, Finding, NotLooked, Severity, Verdict, worst_verdict
from loadstone.judge.settings import DEFAULTS, FAULTS, LOSS
from loadstone.results.result_set import ResultSet
from loadstone.results.stage import prefix_of
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Direction
from loadstone.search.outcome import SearchOutcome
from loadstone.search.probe import ProbeSample
from loadstone.search.rule import Rule
from loadstone.statistics.estimate import Estimate
from loadstone.statistics.knee import Knee
from loadstone.statistics.percentile import UNANSWERED, Bound
from loadstone.statistics.usl import Law

if TYPE_CHECKING:
    # It uses the types of this module.
    from loadstone.judge.outages import Outage

VariantKey = tuple[tuple[str, Scalar], ...]
# `better` and `worse` are claims, as are `same` (no difference that matters) and `slight` (they differ, by less than
# what matters); `none`: no evidence (benchstat's ~); `impossible`: too few repeats to claim anything;
# `refused`: a side is invalid; `unranked`: a side's figure is a bound or beyond every number, as operations failed or
# never ended; `descriptive`: the figure describes a trial, and neither direction is better.
Claim = Literal["better", "worse", "same", "slight", "none", "impossible", "refused", "unranked", "descriptive"]


@dataclass(frozen=True)
class Cell:
    """One metric of one variant over its repeats."""

    variant: VariantKey
    metric: str
    unit: str
    estimate: Estimate
    # Each repeat's figure, in the order of repeats, with the repeat's number.
    samples: tuple[tuple[int, float], ...]
    # The reason why the figure is withheld; empty if it is not.
    withheld: str = ""
    # The bound on the repeats' figures, and the number of bounds; the estimate then has no interval.
    bound: Bound | None = None
    bounded: int = 0
    # The step in which the figures were read, as a share of the figure.
    resolution: float = 0.0


def is_unanswered(cells: Mapping[tuple[VariantKey, str], Cell], cell: Cell) -> bool:
    """Whether an infinite latency of a stage falls on operations that never ended, as none of the stage failed."""
    stage = prefix_of(cell.metric)
    failures = cells.get((cell.variant, f"{stage}errors")) if stage else None
    return failures is not None and not any(figure for _, figure in failures.samples)


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario of a comparison: its evidence, and the claim that it alone would allow."""

    name: str
    ratio: Estimate
    n: int
    reading: Claim
    # Whether the claim fails here first: the verdict rests on this scenario.
    decides: bool = False


@dataclass(frozen=True)
class Comparison:
    """One metric of a contender against the baseline, all other dimensions being equal."""

    metric: str
    unit: str
    direction: Direction | None
    # The dimensions that both sides share, without the compared one.
    context: VariantKey
    by: str
    baseline: Cell
    contender: Cell
    # Contender ÷ baseline.
    ratio: Estimate
    claim: Claim
    # Two-sided p before and after Holm's correction; None if nothing could be tested.
    p: float | None = None
    p_adjusted: float | None = None
    # The test, as text: "paired t test on logarithms within blocks, n=6".
    test: str = ""
    # Cliff's delta, from -1 to 1: the share of pairs in which the contender is above the baseline, minus the reverse.
    effect: float | None = None
    findings: tuple[Finding, ...] = ()
    # The reason why nothing is claimed, or the difference that more repeats could show.
    why: str = ""
    # The compared values that did not hold the rate: their throughput is their capacity.
    capacity: tuple[str, ...] = ()
    # Whether the ratio is a bound ("at least 8.6×"), because figures may be off by a known amount.
    bound: bool = False
    # Whether its metric is not the first one, which alone is confirmatory.
    exploratory: bool = False
    # The evidence in each scenario, as measured first; empty if nothing was tested.
    scenarios: tuple[ScenarioRow, ...] = ()
    # The unit of n if the sides are separate runs: `runs`, or `repeats` if a side has only one run.
    n_unit: str = ""

    @property
    def n_text(self) -> str:
        """`n=6`; between runs with its unit, `n=6 runs`."""
        return f"n={self.count_samples(self.ratio.n)}"

    def count_samples(self, n: int) -> str:
        """A number of samples, between runs with its unit."""
        return units.count_noun(n, self.n_unit.removesuffix("s")) if self.n_unit else f"{n:,}"

    @property
    def verdict(self) -> Verdict:
        """Whether it can be trusted."""
        return worst_verdict(self.findings)

    @property
    def condition(self) -> str:
        """The condition of a claim: `if the number of records were equal, `; empty without one."""
        messages = (finding.message for finding in self.findings if finding.severity == Severity.UNCHECKED)
        names = [text.removeprefix(UNKNOWN_OF_BOTH) for text in messages if text.startswith(UNKNOWN_OF_BOTH)]
        return f"if {units.join_names(', '.join(names).split(', '))} were equal, " if names else ""


@dataclass(frozen=True)
class Curve:
    """Throughput by clients in a closed loop."""

    # The dimensions without clients.
    context: VariantKey
    knee: Knee
    # None if the law does not fit, or if that cannot be decided.
    law: Law | None = None


@dataclass(frozen=True)
class Search:
    """One search for the load of one variant."""

    # The dimensions without the one searched over.
    context: VariantKey
    rule: Rule
    # Each load's samples, in the order of the trials.
    samples: Mapping[float, Sequence[ProbeSample]]
    # The outcome, or the load that still needs a trial.
    end: SearchOutcome | float
    # The findings on the trials behind the answer: those at its load, which held.
    findings: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> SearchOutcome | None:
        """The outcome; None while the search is running."""
        return self.end if isinstance(self.end, SearchOutcome) else None


@dataclass(frozen=True)
class Expectation:
    """One condition on one variant, or on one comparison."""

    # As written.
    text: str
    # The variant, or both sides of the comparison; empty if there is only one variant.
    of: str
    # Whether the condition holds; None: undecided.
    holds: bool | None
    # The figure or ratio with the deciding interval; None if nothing was measured.
    estimate: Estimate | None
    unit: str
    # The reason why it is undecided, or a further reason for the decision.
    why: str = ""
    # The measurement that would decide; empty if it is decided.
    remedy: str = ""

    @property
    def answer(self) -> str:
        """`true`, `false` or `undecided`."""
        return "undecided" if self.holds is None else str(self.holds).lower()


@dataclass(frozen=True)
class Judgement:
    """The whole of it."""

    results: ResultSet
    # By trial id; trials without findings have an empty tuple.
    trials: Mapping[str, tuple[Finding, ...]]
    # By variant: findings that no single trial shows (noisy, incomplete, too few repeats).
    variants: Mapping[VariantKey, tuple[Finding, ...]]
    # By variant and metric.
    cells: Mapping[tuple[VariantKey, str], Cell]
    comparisons: Sequence[Comparison]
    curves: Sequence[Curve] = ()
    # The searches; empty if the question has none.
    searches: Sequence[Search] = ()
    # The figures of each variant with a fault.
    outages: Sequence[Outage] = ()
    # Findings on the whole: hosts that differ between variants, missing points.
    findings: tuple[Finding, ...] = ()
    # The checks that could not run, each with the number of trials or pairs concerned.
    not_looked: Mapping[NotLooked, int] = field(default_factory=dict)
    # The answer by the deciding metric, and a clause for each further metric of the question.
    answer: str = ""
    further: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    # The precision of each run's own throughput, by trial; runs with too short a time series are excluded.
    within: Mapping[str, Estimate] = field(default_factory=dict)
    # The conditions of the question's `expect`, on each variant or comparison.
    expectations: tuple[Expectation, ...] = ()

    @property
    def sentence(self) -> str:
        """The whole answer in one sentence."""
        return "; ".join([self.answer, *self.further])

    @property
    def all_findings(self) -> list[Finding]:
        """Every finding once, the worst first."""
        of_comparisons = (comparison.findings for comparison in self.comparisons)
        every = (self.findings, *self.variants.values(), *self.trials.values(), *of_comparisons)
        return sorted(dict.fromkeys(chain.from_iterable(every)), key=lambda finding: -finding.severity)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all claims: on comparisons, on variants without a counterpart, and on the whole."""
        compared = {cell.variant for pair in self.comparisons for cell in (pair.baseline, pair.contender)}
        groups = [self.findings, *(comparison.findings for comparison in self.comparisons)]
        if any(search.outcome for search in self.searches):
            # A search also tries loads that do not hold: only its answer is claimed.
            return worst_verdict(chain.from_iterable([*groups, *(search.findings for search in self.searches)]))
        for key, trials in self.results.variants.items():
            if key not in compared:
                groups += [self.variants.get(key, ()), *(self.trials.get(trial.trial, ()) for trial in trials)]
        return worst_verdict(chain.from_iterable(groups))

    @property
    def trust(self) -> str:
        """The verdict, and the number of checks that ran: `valid (11 of 16 checks ran)`."""
        return f"{self.verdict} ({self.coverage})" if self.coverage else str(self.verdict)

    @property
    def coverage(self) -> str:
        """The number of checks that ran; empty if all of them did."""
        lacking = len({not_looked.check for not_looked in self.not_looked})
        has_faults = any(trial.faults for trial in self.results.trials)
        every = len(DEFAULTS) - (0 if has_faults else len((*FAULTS, *LOSS)))
        return f"{every - lacking} of {every} checks ran" if lacking else ""

    def lower_bounds(self, cell: Cell) -> Cell:
        """The lower bounds of a latency that the engine's lateness increased; the cell itself if they do not differ."""
        lower = self.cells.get((cell.variant, lower_name(cell.metric))) if is_latency(cell.metric) else None
        if lower is None or lower.bound or lower.withheld or cell.bound:
            return cell
        wider = (1 + cell.resolution) * (1 + lower.resolution)
        return lower if lower.estimate.value * wider < cell.estimate.value else cell

    def output_estimate(self, cell: Cell) -> Estimate:
        """A cell's estimate for output: the lower end of a latency that the engine's lateness increased is lower."""
        return replace(cell.estimate, low=self.lower_bounds(cell).estimate.low)

    def output_bound(self, cell: Cell) -> str | None:
        """A cell's bound for output: `at_most` for a latency that the engine's lateness increased, `unanswered` for an
        infinite one in a stage without failures."""
        if cell.bound == "failed" and is_unanswered(self.cells, cell):
            return UNANSWERED
        return cell.bound or ("at_most" if self.lower_bounds(cell) is not cell else None)

    def trial_verdict(self, trial: str) -> Verdict:
        """Of one trial."""
        return worst_verdict(self.trials.get(trial, ()))
