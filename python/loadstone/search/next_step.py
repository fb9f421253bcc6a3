"""The path of a search: the load is doubled, and then the gap that contains the answer is halved.

The next step depends only on the samples, so a search can continue after any interruption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.format import units
from loadstone.search.outcome import Decision, Kind, SearchOutcome
from loadstone.search.probe import Probe, ProbeSample
from loadstone.search.rule import DELIVERED, Rule
from loadstone.statistics.knee import REPEATS_MIN, RESAMPLES, Knee, find_knee

# The highest load to try, as a multiple of the load at which throughput reaches its plateau: two doublings, as a single
# doubling without a rise may be a dent in a rising curve.
BEYOND = 4
# A throughput counts as lower if it is below the highest by more than this share.
FALL = 0.05


@dataclass(eq=False)
class WantedError(Exception):
    """A request for one more trial at a load, before anything can be decided."""

    load: float


def next_step(rule: Rule, samples: Mapping[float, Sequence[ProbeSample]]) -> float | SearchOutcome:
    """The load that needs another trial, or the outcome if no load does."""
    try:
        return Climb(rule, samples).find_knee() if rule.objective is None else Way(rule, samples).find_limit()
    except WantedError as request:
        return request.load


class Path:
    """One search from its first load to its outcome."""

    def __init__(self, rule: Rule, samples: Mapping[float, Sequence[ProbeSample]]) -> None:
        self.rule = rule
        self.probes = {load: Probe(load, tuple(trials)) for load, trials in sorted(samples.items())}
        # The last load that could not be judged because its trials are invalid, with the reason.
        self.wall: tuple[float, str] | None = None
        self.notes: list[str] = []

    def judge_probe(self, load: float) -> Probe | None:
        """The probe at a load, with the required number of repeats; None if it cannot be judged. Raises WantedError."""
        probe = self.probes.get(load, Probe(load))
        if probe.invalid:
            self.wall = load, probe.invalid
            return None
        # With fewer than REPEATS_MIN repeats, a knee has no bracket.
        enough = REPEATS_MIN if self.rule.objective is None else 1
        if len(probe.valid) < min(max(self.rule.at_least, enough), self.rule.at_most):
            raise WantedError(load)
        return probe

    def request_repeats(self, loads: Sequence[float]) -> None:
        """Raises WantedError for the load with the fewest repeats, while more repeats are allowed."""
        fewest = min(loads, key=lambda load: len(self.probes[load].samples))
        if len(self.probes[fewest].samples) < self.rule.at_most:
            raise WantedError(fewest)

    def build_outcome(
        self, kind: Kind, stopped: str, load: float | None = None, low: float | None = None, high: float | None = None
    ) -> SearchOutcome:
        """The outcome, with the fields that both kinds of search share."""
        probes = list(self.probes.values())
        return SearchOutcome(self.rule, kind, load, low, high, (), probes, stopped, self.wall, tuple(self.notes))

    def outcome_without_loads(self) -> SearchOutcome:
        """The outcome if the first load cannot be judged."""
        assert self.wall is not None, "the first load is judged or cannot be judged"
        return self.build_outcome("nothing", "the first load cannot be judged")


class Climb(Path):
    """A search for the knee: it raises the load until the plateau is visible, and then halves the gap that contains the
    knee."""

    def __init__(self, rule: Rule, samples: Mapping[float, Sequence[ProbeSample]]) -> None:
        super().__init__(rule, samples)
        # The valid samples of the judged loads, in ascending order of load.
        self.tried: dict[float, Sequence[ProbeSample]] = {}

    def find_knee(self) -> SearchOutcome:
        """Finds the knee. Raises WantedError while another trial is needed."""
        stopped = self.ascend_loads()
        if not self.tried:
            return self.outcome_without_loads()
        stopped = self.halve_gap() or stopped
        knee = self.fit_knee()
        self.repeat_bracket(knee)
        kind: Kind = "found" if knee.lower is not None else "below"
        if knee.upper is None:
            kind = "wall" if self.wall else "beyond"
        elif self.wall is not None:
            where, reason = self.rule.format_load(self.wall[0]), self.wall[1]
            self.notes.append(f"nothing is known about {where}, because the probe is invalid: {reason}")
        load = max(self.tried) if knee.upper is None else knee.reached
        return replace(self.build_outcome(kind, stopped, load, knee.lower, knee.upper), knee=knee)

    def ascend_loads(self) -> str:
        """Doubles the load until the plateau is visible; returns the reason for stopping."""
        for load in self.rule.load_ladder():
            if not self.record_load(load):
                return f"{self.rule.format_load(load)} cannot be judged"
            reached = self.fit_knee(0).reached
            if reached is not None and load >= BEYOND * reached:
                return f"{units.format_load(load)} is {BEYOND} times the load that reaches the plateau"
        return "the upper bound was reached"

    def halve_gap(self) -> str:
        """Halves the gap below the load that reaches the plateau; returns the reason for stopping, empty without
        a gap."""
        ladder = self.rule.load_ladder()
        # Loads that were tried between doublings for earlier estimates of the knee also count.
        for load in [load for load in self.probes if load not in ladder]:
            self.record_load(load)
        while True:
            reached, tried = self.fit_knee(0).reached, list(self.tried)
            if reached is None or reached in (tried[0], tried[-1]):
                return ""
            below = tried[tried.index(reached) - 1]
            middle = self.rule.middle_load(below, reached)
            if middle is None:
                return self.rule.explain_closeness(below, reached)
            if sum(load not in ladder for load in self.probes) >= self.rule.halvings_most:
                return f"the limit of {units.count_noun(self.rule.halvings_most, 'load')} between doublings was reached"
            if not self.record_load(middle):
                return f"{self.rule.format_load(middle)} cannot be judged"

    def record_load(self, load: float) -> bool:
        """Whether a load could be judged; records the load or the reason. Raises WantedError."""
        if (probe := self.judge_probe(load)) is not None:
            self.tried = dict(sorted({**self.tried, load: probe.valid}.items()))
        return probe is not None

    def fit_knee(self, resamples: int = RESAMPLES) -> Knee:
        """The knee of the tried loads. The order of trials was not random, so repeats of different loads do not form
        blocks."""
        points = {load: dict(enumerate(trial.throughput for trial in trials)) for load, trials in self.tried.items()}
        return find_knee(points, blocks=False, resamples=resamples)

    def repeat_bracket(self, knee: Knee) -> None:
        """Requests more repeats if the bracket spans more than one gap between tried loads. Raises WantedError."""
        if knee.unclaimed not in (None, "scatter"):
            return
        last = max(self.tried) if knee.upper is None else knee.upper
        within = [load for load in self.tried if (knee.lower or 0) <= load <= last]
        if len(within) > (1 if knee.lower is None else 2):
            self.request_repeats(within)


class Way(Path):
    """A search for the highest load that meets an objective."""

    def __init__(self, rule: Rule, samples: Mapping[float, Sequence[ProbeSample]]) -> None:
        super().__init__(rule, samples)
        self.decisions: dict[float, Decision] = {}
        # The bracket: the highest load that meets the objective, and the lowest load that does not.
        self.low: float | None = None
        self.high: float | None = None
        # Whether two consecutive loads missed the objective during the ascent.
        self.twice = False

    def find_limit(self) -> SearchOutcome:
        """Finds the highest load. Raises WantedError while another trial is needed."""
        self.climb_loads()
        if self.low is None and self.high is None:
            return self.outcome_without_loads()
        if self.high is None:
            if self.wall is not None:
                return self.answer_search("wall", self.low, f"{self.rule.format_load(self.wall[0])} cannot be judged")
            self.confirm_bracket()
            return self.answer_search("beyond", self.low, "the upper bound was reached")
        if self.low is None:
            return self.answer_search("below", None, "there was no lower load to try")
        load, stopped = self.halve_bracket(self.low, self.high)
        wall = self.wall
        self.confirm_bracket()
        self.wall = wall
        confirmed = [decision.load for decision in self.decisions.values() if decision.go and decision.load <= load]
        if not confirmed:
            return self.answer_search("below", None, "no load met the objective when it was tried again")
        return self.answer_search("found", max(confirmed), stopped)

    def confirm_bracket(self) -> None:
        """Repeats the ends of the bracket alternately, so that a temporary disturbance cannot decide the answer.

        Raises WantedError.
        """
        for load in [load for load in self.probes if self.probes[load].valid]:
            self.decide_load(load)
        answer = max((decision.load for decision in self.decisions.values() if decision.go), default=None)
        low, high = certain_bounds([*self.decisions.values()], answer)
        # At the lower end, the objective may occasionally be missed; at the upper end, it was missed in all trials.
        required = {low: self.rule.confirmations, high: self.rule.confirmations / 2}
        missing = {
            end: 1 - len(self.probes[end].samples) / most for end, most in required.items() if end is not None and most
        }
        load, share = max(missing.items(), key=lambda item: item[1], default=(0.0, 0.0))
        if share > 0:
            raise WantedError(load)

    def climb_loads(self) -> None:
        """Doubles the load until two consecutive loads miss the objective (a single miss may be a dent), or the
        system fails."""
        for load in self.rule.load_ladder():
            go = self.decide_load(load)
            if go is None:
                if self.high is not None:
                    self.notes.append(f"higher loads are unknown: {refusal_reason(self.rule, self.wall)}")
                return
            if go:
                self.low, self.high = load, None
            elif any(sample.failed for sample in self.probes[load].valid):
                self.high = self.high or load
                return
            elif self.high is None:
                self.high = load
            else:
                self.twice = True
                return

    def halve_bracket(self, low: float, high: float) -> tuple[float, str]:
        """Halves the bracket on a logarithmic scale; returns the answer and the reason for stopping."""
        ladder, most = self.rule.load_ladder(), self.rule.halvings_most
        while (middle := self.rule.middle_load(low, high)) is not None:
            if middle not in self.probes and sum(load not in ladder for load in self.probes) >= most:
                return low, f"the limit of {units.count_noun(most, 'load')} between doublings was reached"
            go = self.decide_load(middle)
            if go is None:
                # Earlier trials may have tried other loads below this one.
                wall, below = self.wall, [load for load in self.probes if low < load < middle]
                answer = max(filter(self.decide_load, below), default=low)
                self.wall = wall
                return answer, refusal_reason(self.rule, wall)
            low, high = (middle, high) if go else (low, middle)
        return low, self.rule.explain_closeness(low, high)

    def decide_load(self, load: float) -> bool | None:
        """Whether a load meets the objective in most of its repeats; None if it cannot be judged.

        Raises WantedError.
        """
        if (probe := self.judge_probe(load)) is None:
            return None
        votes = [self.holds_objective(load, sample) for sample in probe.valid]
        # The objective is not met at a load at which the system failed even once.
        failed = any(sample.failed for sample in probe.valid)
        decision = Decision(load, sum(votes), len(votes), failed, any(sample.late for sample in probe.samples))
        if not decision.sure:
            self.request_repeats([load])
        self.decisions[load] = decision
        return decision.go

    def holds_objective(self, load: float, sample: ProbeSample) -> bool:
        """Whether a trial meets the objective and, in a search over rates, achieved the rate."""
        # The check rate-not-held decides. In a short window, the check may miss a throughput far below the rate, so the
        # throughput is tested as well.
        if self.rule.over == "rate" and (sample.missed or sample.throughput < DELIVERED * load):
            return False
        return bool(sample.meets)

    def answer_search(self, kind: Kind, load: float | None, stopped: str) -> SearchOutcome:
        """The outcome with its certain bounds."""
        decisions = [self.decisions[load] for load in sorted(self.decisions)]
        self.notes += self.list_oddities(decisions, load)
        outcome = self.build_outcome(kind, stopped, load, *certain_bounds(decisions, load))
        return replace(outcome, decisions=decisions, twice=self.twice)

    def list_oddities(self, decisions: Sequence[Decision], load: float | None) -> Iterator[str]:
        """Notes on oddities: decisions that are not monotone, and throughput that is higher at a lower load."""
        sure = [decision for decision in decisions if decision.sure]
        for i, early in enumerate(sure):
            late = next((decision for decision in sure[i + 1 :] if decision.go), None)
            if not early.go and late is not None:
                no, yes = self.rule.format_load(early.load), self.rule.format_load(late.load)
                what = f"the objective was not met at {no}, but was met again at {yes}"
                yield f"not monotone: {what}; there may be more than one answer"
                break
        known = {probe.load: probe.throughput or 0.0 for probe in self.probes.values() if not probe.invalid}
        peak = max(known, key=lambda item: known[item], default=0.0)
        if self.rule.over != "rate" and load in known and peak < load and 0 < known[load] < known[peak] * (1 - FALL):
            higher = self.rule.format_load(peak)
            yield f"throughput is higher at {higher}: more clients meet the objective, but with less throughput"


def certain_bounds(decisions: Sequence[Decision], load: float | None) -> tuple[float | None, float | None]:
    """The nearest loads around the answer with certain decisions: the lower meets the objective, the upper does not."""
    if load is None:
        return None, None
    low = max(
        (decision.load for decision in decisions if decision.sure and decision.go and decision.load <= load),
        default=None,
    )
    return low, min(
        (decision.load for decision in decisions if decision.sure and not decision.go and decision.load > load),
        default=None,
    )


def refusal_reason(rule: Rule, wall: tuple[float, str] | None) -> str:
    """The reason why a load cannot be judged."""
    assert wall is not None, "a load cannot be judged"
    return f"the probe at {rule.format_load(wall[0])} is invalid: {wall[1]}"
