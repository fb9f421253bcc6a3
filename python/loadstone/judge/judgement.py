"""A judgement: all results of the judge for a result set, ready for output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from loadstone.format import units
from loadstone.judge.figures import is_latency, lower_name
from loadstone.judge.finding import ORDER_OF_RUNS, UNKNOWN_OF_BOTH, Finding, NotLooked, Severity, Verdict, worst_verdict
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
    # The module `outages` imports this module.
    from loadstone.judge.outages import Outage

VariantKey = tuple[tuple[str, Scalar], ...]
# The claims are `better`, `worse`, `same` (no difference that matters) and `slight` (a difference too small to matter).
# `none`: no evidence (benchstat's ~); `impossible`: too few repeats for any claim; `refused`: a side is invalid;
# `unranked`: a side's figure is a bound or infinite, because operations failed or never completed; `descriptive`: the
# figure describes a trial, and neither direction is better.
Claim = Literal["better", "worse", "same", "slight", "none", "impossible", "refused", "unranked", "descriptive"]


@dataclass(frozen=True)
class Cell:
    """One metric of one variant over its repeats."""

    variant: VariantKey
    metric: str
    unit: str
    estimate: Estimate
    # The number and the figure of each repeat, in the order of repeats.
    samples: tuple[tuple[int, float], ...]
    # The reason why the figure is withheld; empty if it is printed.
    withheld: str = ""
    # The kind of bound, if figures of repeats are bounds, and the number of such repeats; the estimate then has no
    # interval.
    bound: Bound | None = None
    bounded: int = 0
    # The resolution with which the figures were read, as a share of the figure.
    resolution: float = 0.0


def is_unanswered(cells: Mapping[tuple[VariantKey, str], Cell], cell: Cell) -> bool:
    """Whether a stage's infinite latency is due to operations that never completed: none of its operations failed."""
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
    # Whether this is the first scenario in which the claim fails, so that the verdict depends on it.
    decides: bool = False


@dataclass(frozen=True)
class Comparison:
    """One metric of a contender against the baseline, all other dimensions being equal."""

    metric: str
    unit: str
    direction: Direction | None
    # The dimensions that both sides share; the compared dimension is omitted.
    context: VariantKey
    by: str
    baseline: Cell
    contender: Cell
    # Contender ÷ baseline.
    ratio: Estimate
    claim: Claim
    # The two-sided p before and after Holm's correction; None without a test.
    p: float | None = None
    p_adjusted: float | None = None
    # The test as text: "paired t test on logarithms within blocks, n=6".
    test: str = ""
    # Cliff's delta, from -1 to 1: the share of pairs with the contender above the baseline, minus the share below.
    effect: float | None = None
    findings: tuple[Finding, ...] = ()
    # The reason why nothing is claimed, or the difference that more repeats could detect.
    why: str = ""
    # The compared values that missed the rate; their throughput is their capacity.
    capacity: tuple[str, ...] = ()
    # Whether the ratio is a bound ("at least 8.6×"), because figures may be off by a known amount.
    bound: bool = False
    # Whether the metric is exploratory; only the first metric is confirmatory.
    exploratory: bool = False
    # The evidence in each scenario, beginning with the scenario as measured; empty if nothing was tested.
    scenarios: tuple[ScenarioRow, ...] = ()
    # The unit of n for sides of separate runs: `runs`, or `repeats` if a side has only one run; empty within a run.
    n_unit: str = ""

    @property
    def n_text(self) -> str:
        """The number of samples: `n=6`; between runs with a unit, `n=6 runs`."""
        return f"n={self.count_samples(self.ratio.n)}"

    def count_samples(self, n: int) -> str:
        """A number of samples as text; between runs with a unit."""
        return units.count_noun(n, self.n_unit.removesuffix("s")) if self.n_unit else f"{n:,}"

    @property
    def verdict(self) -> Verdict:
        """Whether the comparison can be trusted."""
        return worst_verdict(self.findings)

    @property
    def condition(self) -> str:
        """The condition of a claim: `if the number of records were equal, `; empty if the claim has none."""
        messages = (finding.message for finding in self.findings if finding.severity == Severity.UNCHECKED)
        names = [text.removeprefix(UNKNOWN_OF_BOTH) for text in messages if text.startswith(UNKNOWN_OF_BOTH)]
        unknown = [name for name in ", ".join(names).split(", ") if name]
        facts = [name for name in unknown if name != ORDER_OF_RUNS]
        conditions = [f"{units.join_names(facts)} were equal"] if facts else []
        conditions += ["the runs had alternated"] if ORDER_OF_RUNS in unknown else []
        return f"if {' and '.join(conditions)}, " if conditions else ""


@dataclass(frozen=True)
class Curve:
    """Throughput against the number of clients, in a closed loop."""

    # All dimensions except the number of clients.
    context: VariantKey
    knee: Knee
    # None if the law does not fit, or if there are too few points to decide.
    law: Law | None = None


@dataclass(frozen=True)
class Search:
    """One search for the load of one variant."""

    # All dimensions except the searched dimension.
    context: VariantKey
    rule: Rule
    # The samples of each load, in the order of the trials.
    samples: Mapping[float, Sequence[ProbeSample]]
    # The outcome, or the load that still needs a trial.
    end: SearchOutcome | float
    # The findings behind the answer: on valid trials at its load, and on evidence against the answer.
    findings: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> SearchOutcome | None:
        """The outcome; None while the search is running."""
        return self.end if isinstance(self.end, SearchOutcome) else None


@dataclass(frozen=True)
class Expectation:
    """One condition on one variant, or on one comparison."""

    # The condition as written.
    text: str
    # The name of the variant, or of both sides of the comparison; empty if there is only one variant.
    of: str
    # Whether the condition is met; None if undecided.
    holds: bool | None
    # The figure or ratio with the deciding interval; None if nothing was measured.
    estimate: Estimate | None
    unit: str
    # The reason why the condition is undecided, or a further reason for the decision.
    why: str = ""
    # The step that would decide the condition; empty if it is decided.
    remedy: str = ""
    # The figure's bound, as in the table of figures.
    bound: str | None = None

    @property
    def answer(self) -> str:
        """`true`, `false` or `undecided`."""
        return "undecided" if self.holds is None else str(self.holds).lower()


@dataclass(frozen=True)
class ShortAnswer:
    """The answer for use above a table that states the figures."""

    # The answer based on the deciding metric, without figures.
    statement: str
    # The metrics in the table.
    metrics: tuple[str, ...]
    # The further clauses that the table does not replace.
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """All findings, comparisons and answers for a result set."""

    results: ResultSet
    # The findings by trial id; trials without findings have an empty tuple.
    trials: Mapping[str, tuple[Finding, ...]]
    # The findings that no single trial can show, by variant (noisy, incomplete, too few repeats).
    variants: Mapping[VariantKey, tuple[Finding, ...]]
    cells: Mapping[tuple[VariantKey, str], Cell]
    comparisons: Sequence[Comparison]
    curves: Sequence[Curve] = ()
    # The searches; empty if the question has none.
    searches: Sequence[Search] = ()
    # The figures of each variant with a fault.
    outages: Sequence[Outage] = ()
    # Findings on the whole result set: missing variants, hosts that differ between variants.
    findings: tuple[Finding, ...] = ()
    # The checks that could not run, each with the number of affected trials or pairs.
    not_looked: Mapping[NotLooked, int] = field(default_factory=dict)
    # The answer based on the deciding metric, and a clause for each further metric of the question.
    answer: str = ""
    further: tuple[str, ...] = ()
    # None if no table can state the figures of the answer.
    short: ShortAnswer | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    # The throughput within each trial with its interval, by trial id; trials with too short a time series have none.
    within: Mapping[str, Estimate] = field(default_factory=dict)
    # The conditions under `expect`, decided for each variant or comparison.
    expectations: tuple[Expectation, ...] = ()

    @property
    def sentence(self) -> str:
        """The whole answer in one sentence."""
        return "; ".join([self.answer, *self.further])

    @property
    def all_findings(self) -> list[Finding]:
        """Every finding once, the most severe first."""
        of_comparisons = (comparison.findings for comparison in self.comparisons)
        of_searches = (search.findings for search in self.searches)
        every = (self.findings, *self.variants.values(), *self.trials.values(), *of_comparisons, *of_searches)
        return sorted(dict.fromkeys(chain.from_iterable(every)), key=lambda finding: -finding.severity)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all claims: on comparisons, on variants without a counterpart, and on the whole result set."""
        return worst_verdict(self.claim_findings)

    @property
    def answer_verdict(self) -> Verdict:
        """The verdict on the answer alone, without exploratory metrics."""
        return worst_verdict(self.answer_findings)

    @property
    def claim_findings(self) -> list[Finding]:
        """The findings on all claims."""
        return self._list_findings(self.comparisons)

    @property
    def answer_findings(self) -> list[Finding]:
        """The findings on the searches or the deciding metric's comparisons; on all claims with outages or curves."""
        ended = [search for search in self.searches if search.outcome]
        if self.outages or (self.curves and not ended):
            return self.claim_findings
        deciding = [comparison for comparison in self.comparisons if comparison.metric == self.comparisons[0].metric]
        return self._list_findings([] if ended else deciding)

    def _list_findings(self, comparisons: Sequence[Comparison]) -> list[Finding]:
        """The findings on comparisons, on variants without a counterpart, and on the whole result set."""
        compared = {cell.variant for pair in comparisons for cell in (pair.baseline, pair.contender)}
        groups = [self.findings, *(comparison.findings for comparison in comparisons)]
        if any(search.outcome for search in self.searches):
            # A search also tries loads that the system cannot sustain, but claims only its answer.
            return list(chain.from_iterable([*groups, *(search.findings for search in self.searches)]))
        for key, trials in self.results.variants.items():
            if key not in compared:
                groups += [self.variants.get(key, ()), *(self.trials.get(trial.trial, ()) for trial in trials)]
        return list(chain.from_iterable(groups))

    @property
    def trust(self) -> str:
        """The verdict, and the number of checks that ran: `valid (11 of 16 checks ran in full)`."""
        return f"{self.verdict} ({self.coverage})" if self.coverage else str(self.verdict)

    @property
    def coverage(self) -> str:
        """The number of checks that ran; empty if all of them did."""
        lacking = len({not_looked.check for not_looked in self.not_looked})
        has_faults = any(trial.faults for trial in self.results.trials)
        every = len(DEFAULTS) - (0 if has_faults else len((*FAULTS, *LOSS)))
        return f"{every - lacking} of {every} checks ran in full" if lacking else ""

    def lower_bounds(self, cell: Cell) -> Cell:
        """The lower bounds of a latency that the engine's lateness increased; the cell itself if the latency was not
        increased."""
        lower = self.cells.get((cell.variant, lower_name(cell.metric))) if is_latency(cell.metric) else None
        if lower is None or lower.bound or lower.withheld or cell.bound:
            return cell
        wider = (1 + cell.resolution) * (1 + lower.resolution)
        return lower if lower.estimate.value * wider < cell.estimate.value else cell

    def output_estimate(self, cell: Cell) -> Estimate:
        """A cell's estimate for output: its interval begins at the lower bound of a latency that lateness increased."""
        return replace(cell.estimate, low=self.lower_bounds(cell).estimate.low)

    def output_bound(self, cell: Cell) -> str | None:
        """A cell's bound for output: `at_most` for a latency that the engine's lateness increased, `unanswered` for an
        infinite latency in a stage without failures."""
        if cell.bound == "failed" and is_unanswered(self.cells, cell):
            return UNANSWERED
        return cell.bound or ("at_most" if self.lower_bounds(cell) is not cell else None)

    def trial_verdict(self, trial: str) -> Verdict:
        """The verdict on one trial."""
        return worst_verdict(self.trials.get(trial, ()))
