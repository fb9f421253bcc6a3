"""A run of an experiment: its trials in random order, block by block, until there are enough of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import kind_of
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan.plan import Plan, PlannedTrial
from loadstone.fleet.local import Local
from loadstone.format import units
from loadstone.judge.judgement import VariantKey
from loadstone.results.folder import Folder
from loadstone.results.result_set import first_metric, variant, variant_name
from loadstone.results.trial_result import TrialResult
from loadstone.runner.datasets import DataSpaces
from loadstone.runner.pilot import FAILING_VARIANTS_MAX, Pilot
from loadstone.runner.progress import Display, Whole
from loadstone.runner.servers import RunServers, foreseen
from loadstone.runner.trial import Conductor
from loadstone.statistics import stopping

# A variant whose last attempts failed so often is set aside: the others are not to wait for it.
ATTEMPTS_MAX = 3
# The run gives up after so many consecutive failures, if they are of all variants or of FAILING_VARIANTS_MAX of them.
FAILURES_MAX = 3
# More variants than this are not all tried on the engine before the first trial.
CHECKED_MAX = 200
# Why a run stops, by stopping's reasons.
STOPS = {
    "narrow": "every interval is as narrow as asked",
    "at-most": "the most repeats that the file allows are done",
    "at-least": "all repeats are done",
}


@dataclass
class Run:
    """One run, new or resumed, into a folder."""

    experiment: Experiment
    plan: Plan
    folder: Folder
    shown: Display
    seconds_each: float
    # Whether variants that were set aside are tried again.
    retry_failed: bool = False
    done: dict[str, TrialResult] = field(default_factory=dict)
    # How many attempts there were at each trial.
    attempts: Counter[str] = field(default_factory=Counter)
    # How many of a variant's last attempts failed, one after the other.
    failed: Counter[VariantKey] = field(default_factory=Counter)
    # The variants of the last trials, as long as all of these failed.
    failing: list[VariantKey] = field(default_factory=list)

    def go(self) -> str:
        """Runs every trial that is missing; returns why it stopped. Raises LoadstoneError when it cannot go on."""
        self.recall()
        repeats = self.experiment.repeats
        planned = set(self.folder.blocks)
        with self.conducting() as conductor:
            self.warm_up(conductor)
            trials = repeats.at_least * len(self.plan.variants)
            whole = Whole(self.folder.name, trials, len(self.done), self.seconds_each)
            self.shown.plan(whole)
            for number, block in enumerate(self.plan.blocks(), 1):
                # A block that was begun is ended first: a lost trial of it would leave its variant invalid.
                if number > repeats.at_least and number not in planned and (reason := self.enough()):
                    return reason
                if number not in planned:
                    self.folder.plan(number, {each.trial: each.variant.config for each in block})
                whole.trials = max(whole.trials, number * len(self.plan.variants))
                for each in block:
                    if each.trial not in self.done and not self.set_aside(variant(each.variant.config)):
                        self.trial(conductor, each)
                        whole.finish()
        return self.enough() or self.stopped("at-most")

    def warm_up(self, conductor: Conductor) -> None:
        """Has the pilot block find the warm-up, where there is one."""
        if self.experiment.pilot:
            pilot = Pilot(self.experiment, self.plan, self.folder, self.shown, self.seconds_each)
            found = pilot.find(conductor)
            self.seconds_each = found.get("trial_seconds") or self.seconds_each
            measure = self.experiment.measure.model_copy(update={"warmup": found["warmup_seconds"]})
            self.experiment = self.experiment.model_copy(update={"measure": measure})
            conductor.experiment = self.experiment

    def recall(self) -> None:
        """What the folder tells of the attempts so far."""
        for each in self.folder.attempts()[0]:
            self.count(each)
        if self.retry_failed:
            self.failed.clear()
        for key in self.failed:
            if self.set_aside(key):
                self.shown.say(given_up(key), bad=True)

    def count(self, result: TrialResult) -> None:
        """One more attempt."""
        self.attempts[result.trial] = max(self.attempts[result.trial], result.attempt)
        if result.end == "done":
            self.done[result.trial] = result
            self.failed.pop(variant(result.config), None)
        elif result.failed:
            self.failed[variant(result.config)] += 1

    def set_aside(self, key: VariantKey) -> bool:
        """Whether a variant is not tried any more."""
        return self.failed[key] >= ATTEMPTS_MAX

    @contextmanager
    def conducting(self) -> Iterator[Conductor]:
        """The conductor of the trials; what they needed is tidied up at the end."""
        with DataSpaces(self.folder.identity) as spaces, RunServers(self.folder.identity) as servers:
            yield Conductor(self.experiment, spaces, self.shown, Local(), servers)

    def trial(self, conductor: Conductor, planned: PlannedTrial) -> None:
        """Runs a trial and writes it down. Raises LoadstoneError after too many consecutive failures."""
        self.shown.trial(planned.trial)
        attempt = self.attempts[planned.trial] + 1
        with self.folder.trial(planned.trial, attempt) as files:
            result = replace(conductor.conduct(planned, files), attempt=attempt)
        self.folder.append(result)
        self.shown.say(line(result), bad=result.end != "done")
        self.count(result)
        if result.end == "done":
            self.failing.clear()
            return
        key = variant(result.config)
        self.failing.append(key)
        failing = len(set(self.failing))
        if len(self.failing) >= FAILURES_MAX and 1 < failing >= min(len(self.plan.variants), FAILING_VARIANTS_MAX):
            hint = result.notes[-1].hint if result.notes else "see its events"
            raise LoadstoneError(
                f"{len(self.failing)} consecutive trials failed; last error: {result.reason}",
                f"{hint}; then continue with `loadstone run --resume`",
            )
        if self.set_aside(key):
            self.shown.say(given_up(key), bad=True)

    def enough(self) -> str | None:
        """Why no more repeats are needed, in words, None if some are."""
        repeats = self.experiment.repeats
        # The others do not go on for the sake of a variant that is not tried any more.
        samples = [each for key, each in self.samples.items() if not self.set_aside(key)]
        reason = stopping.enough(samples, repeats.at_least, repeats.at_most, repeats.until)
        return None if reason is None else self.stopped(reason)

    def stopped(self, reason: stopping.Reason) -> str:
        """A reason in words. It is that of the variants that have a figure, so those that have none are counted."""
        there, every = {variant(trial.config) for trial in self.done.values()}, len(self.plan.variants)
        lacking = sum(variant(each.config) not in there for each in self.plan.variants)
        have = "has" if lacking == 1 else "have"
        return STOPS[reason] + (f", but {lacking} of {every} variants {have} no figure" if lacking else "")

    @property
    def samples(self) -> dict[VariantKey, list[float]]:
        """The first metric that is compared, of each repeat by variant, if anything was done of it.

        What is only a lower bound does not count: an interval around bounds is not narrow, it is unknown.
        """
        trials: dict[VariantKey, list[TrialResult]] = {}
        for trial in self.done.values():
            trials.setdefault(variant(trial.config), []).append(trial)
        if self.experiment.repeats.until is None:
            # Only how many there are matters.
            return {key: [0.0] * len(each) for key, each in trials.items()}
        found = {}
        for key, each in trials.items():
            metric = first_metric(each, self.experiment.compare.metrics)
            known = (trial.values.get(metric) for trial in each)
            found[key] = [value.value for value in known if value is not None and value.bound is None]
        return found


def given_up(key: VariantKey) -> str:
    """The message that a variant is not tried any more."""
    again = "`loadstone run --resume --retry-failed` tries it again"
    return f"{variant_name(key)} is set aside: its last {ATTEMPTS_MAX} attempts failed; {again}"


def line(result: TrialResult) -> str:
    """A trial in one line."""
    throughput, p99 = result.values.get("throughput"), result.values.get("all.p99")
    if throughput is None:
        note = result.notes[-1].message if result.notes else ""
        return f"✗ {result.trial}: {result.end}{': ' if note else ''}{note}"
    speed = units.rate if throughput.unit == "op/s" else units.bandwidth
    parts = [speed(throughput.value), f"p99 {units.bounded(units.duration(p99.value), p99.bound)}" if p99 else ""]
    errors = result.value("errors") or 0
    parts.append(f"{units.count(errors)} errors" if errors else "")
    mark = "✓" if result.end == "done" else f"✗ {result.end}"
    return f"{mark} {result.trial}: {', '.join(part for part in parts if part)}"


def preflight(plan: Plan) -> None:
    """Has the engine read what every variant asks for, so that no mistake waits for its turn.

    Raises LoadstoneError with all of its complaints.
    """
    complaints: dict[str, LoadstoneError] = {}
    for each in plan.variants[:CHECKED_MAX]:
        for check in kind_of(each).preflight(foreseen(each)):
            try:
                check()
            except LoadstoneError as error:
                complaints.setdefault(str(error), error)
    if complaints:
        raise SeveralError(list(complaints.values()))


class SeveralError(LoadstoneError):
    """More than one thing is wrong."""

    def __init__(self, errors: list[LoadstoneError]) -> None:
        super().__init__(str(errors[0].args[0]), errors[0].hint)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))
