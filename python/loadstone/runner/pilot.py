"""Runs the pilot block: every variant once before the run, to find variants that fail and the length of the warm-up.

Its trials have no warm-up and a long window: the longest possible warm-up plus twice the window of the experiment.
The trials are recorded in `pilot.jsonl` and do not count. The warm-up is in `pilot.json`, where a resumed run finds it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.experiment.model.experiment import PILOT_CAP, PILOT_WINDOWS, Experiment
from loadstone.experiment.plan import order
from loadstone.experiment.plan.plan import Plan, PlannedTrial
from loadstone.format import units
from loadstone.format.parsing import format_seconds
from loadstone.judge.checks import rate
from loadstone.judge.finding import Severity
from loadstone.judge.findings import judge_trial
from loadstone.judge.pairing import match_variants
from loadstone.judge.settings import Settings
from loadstone.results import lines
from loadstone.results.folder import PILOT, PILOT_TRIALS, Folder, indent_json
from loadstone.results.result_set import ResultSet, first_metric, variant_key
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import metric_statistic
from loadstone.runner.attempts import Attempts, abandonment_error
from loadstone.runner.progress import Display, RunProgress
from loadstone.runner.trial import Conductor
from loadstone.statistics.steady import common_warm_up_end

# MSER leaves a bias as large as the noise of one series, which is too much for a comparison of many repeats. In
# simulations (tests/unit/test_judge_simulations.py) a warm-up that is 50 % longer leaves a third of that bias.
MARGIN = 1.5
# A warm-up is a multiple of this number of seconds.
STEP_SECONDS = 0.5
COLUMNS = {"p50": "p50_ns", "p99": "p99_ns"}


@dataclass(frozen=True)
class Group:
    """Pilot trials of variants with the same data on the same system, and the times at which they became steady."""

    trials: tuple[str, ...]
    throughput_seconds: float
    # The time for the first compared metric; None if the metric is neither a p50 nor a p99.
    latency_seconds: float | None
    # The warm-up that this group needs.
    warmup_seconds: float


@dataclass(frozen=True)
class PilotResult:
    """The result of a pilot block, which is stored in pilot.json."""

    warmup_seconds: float
    cap_seconds: float
    # Whether the cap shortened the warm-up.
    capped: bool
    # The expected duration of a trial with this warm-up, from the block's median overhead; None if no trial was timed.
    trial_seconds: float | None
    # The group with the longest warm-up determines the result.
    groups: tuple[Group, ...]


@dataclass
class Pilot:
    """The pilot block of one run."""

    experiment: Experiment
    plan: Plan
    folder: Folder
    display: Display
    # An estimate of the duration of a trial.
    seconds_each: float
    # The duration of each trial in addition to its window.
    overhead_seconds: list[float] = field(default_factory=list)

    def find(self, conductor: Conductor, retry_failed: bool) -> Mapping[str, Any]:
        """The fields of `PilotResult`, from pilot.json; if the file has no result, runs the remaining trials first.

        Raises LoadstoneError if no variant can run.
        """
        fields = self.folder.load_results().pilot
        if not isinstance(fields.get("warmup_seconds"), int | float):
            fields = asdict(self.run(conductor, retry_failed))
            lines.replace_file(self.folder.path / PILOT, indent_json(fields))
        return fields

    def run(self, conductor: Conductor, retry_failed: bool) -> PilotResult:
        """Runs the missing and the failed trials. Raises LoadstoneError if no variant can run."""
        attempts = Attempts(self.folder, self.display, PILOT_TRIALS)
        attempts.restore(retry_failed)
        conductor.experiment = self.long()
        variants = len(self.plan.variants)
        block = units.count_noun(variants, "trial")
        self.display.say(f"running a pilot block of {block} to find the warm-up; its results do not count")
        progress = RunProgress(f"{self.folder.name}, pilot", variants, len(attempts.done), self.seconds_each)
        self.display.plan(progress)
        # Trials without an attempt precede failed trials, so that a resumed run reaches them.
        for planned in sorted(self.block(), key=lambda item: attempts.numbers[item.trial] > 0):
            if planned.trial in attempts.done or attempts.set_aside(variant_key(planned.variant.config)):
                continue
            result = self.trial(conductor, planned, attempts)
            progress.finish()
            # Repeated failures of a single variant do not stop the remaining variants.
            if attempts.all_fail(variants) and (result.attempt == 1 or not attempts.done):
                failures = f"{len(attempts.failing)} consecutive trials failed"
                message = failures if attempts.done else "no variant can run"
                raise abandonment_error(message, result, resumable=bool(attempts.done))
        self.report_pairs()
        if not attempts.done:
            raise LoadstoneError(
                "no variant can run: all are excluded",
                "remove the causes, then use `loadstone run --resume --retry-failed`",
            )
        outcome = self.result(self.folder.read_pilots())
        capped = ", the longest possible" if outcome.capped else ""
        self.display.say(f"every trial warms up for {format_seconds(outcome.warmup_seconds)}{capped} ({PILOT})")
        return outcome

    def long(self) -> Experiment:
        """The experiment with the pilot's long window."""
        duration = self.experiment.measure.duration
        assert duration is not None, "an experiment with a pilot has a window"
        measure = {"warmup": 0.0, "duration": (PILOT_CAP + PILOT_WINDOWS) * duration}
        return self.experiment.model_copy(update={"measure": self.experiment.measure.model_copy(update=measure)})

    def block(self) -> Iterator[PlannedTrial]:
        """Every variant once, in random order."""
        for position, index in enumerate(order.draw_order(self.plan.keys, self.experiment.seed, 0)):
            variant = self.plan.variants[index]
            yield PlannedTrial(f"pilot-{position:0{order.DIGITS_MIN}}-{variant.slug}", variant, 0, position)

    def trial(self, conductor: Conductor, planned: PlannedTrial, attempts: Attempts) -> TrialResult:
        """Runs and records a trial, and reports findings that would make it invalid, before the run spends hours on
        it."""
        self.display.trial(planned.trial)
        started = time.monotonic()
        result = attempts.make(conductor, planned, order=None)
        if result.end == "done":
            self.overhead_seconds.append(time.monotonic() - started - (conductor.experiment.measure.duration or 0.0))
        settings = Settings.from_question(self.folder.question)
        for finding in judge_trial(result, self.folder.load_series(planned.trial, result.attempt), settings):
            # Milder findings are expected, because without a warm-up no window is steady.
            if finding.severity == Severity.INVALID:
                self.display.say(f"{result.trial}: {finding.check}: {finding.message}", bad=True)
        return result

    def report_pairs(self) -> None:
        """Reports findings that would make comparisons invalid, before the run spends hours on its trials."""
        question = self.folder.question
        settings = Settings.from_question(question)
        pilots = ResultSet(self.folder.name, self.folder.read_pilots(), question, interleaved=True)
        findings = [finding for match in match_variants(pilots, settings, {}) for finding in match.findings]
        findings += [
            finding for trials in pilots.variants.values() for finding in rate.check_driver_time(trials, settings)
        ]
        for finding in dict.fromkeys(findings):
            if finding.severity == Severity.INVALID:
                self.display.say(f"{finding.check}: {finding.message} ({finding.hint})", bad=True)

    def result(self, trials: Sequence[TrialResult]) -> PilotResult:
        """Computes the warm-up from the trials. Raises LoadstoneError if no trial has a time series."""
        # Failed trials are excluded, because the shortest series of a group limits the length of all its series.
        done = [trial for trial in trials if trial.end == "done"]
        known = [
            (trial, series)
            for trial in done
            if (series := self.folder.load_series(trial.trial, trial.attempt)) is not None
        ]
        if not known:
            raise LoadstoneError("no trial of the pilot block has a time series", "set `measure.warmup`")
        duration = self.experiment.measure.duration or 0.0
        cap = PILOT_CAP * duration
        pools: dict[str, list[tuple[str, Series]]] = {}
        # Variants with the same data on the same system are pooled, so that one noisy trial does not decide.
        keys = {order.draw_key(variant.config): variant.load_key for variant in self.plan.variants}
        for trial, series in known:
            pools.setdefault(keys[order.draw_key(trial.config)], []).append((trial.trial, series))
        column = COLUMNS.get(metric_statistic(first_metric(done, self.experiment.compare.metrics)))
        groups = tuple(group(pool, column) for pool in pools.values())
        warmup, capped = warm_up(groups, cap)
        overhead = max(median(self.overhead_seconds), 0.0) if self.overhead_seconds else None
        trial_seconds = None if overhead is None else overhead + warmup + duration
        return PilotResult(warmup, cap, capped, trial_seconds, groups)


def warm_up(groups: Sequence[Group], cap: float) -> tuple[float, bool]:
    """The warm-up of all trials, at most `cap` seconds; and whether the cap shortened it."""
    needed = max(item.warmup_seconds for item in groups)
    rounded = math.ceil(needed / STEP_SECONDS) * STEP_SECONDS
    return min(max(rounded, STEP_SECONDS), cap), needed > cap


def group(pool: Sequence[tuple[str, Series]], column: str | None) -> Group:
    """The times at which throughput and the compared latency became steady, over the pooled trials of a group
    (MSER)."""
    series = [member for _, member in pool]
    starts = max((member.start_seconds for member in series), key=len)

    def seconds(points: Sequence[Sequence[float]]) -> float:
        return starts[min(common_warm_up_end(points), len(starts) - 1)]

    latency = None
    if column is not None:
        latencies = [getattr(member, column)[: len(member.complete_rates)] for member in series]
        latency = seconds([column for column in latencies if None not in column])
    throughput = seconds([member.complete_rates for member in series])
    return Group(tuple(name for name, _ in pool), throughput, latency, MARGIN * max(throughput, latency or 0.0))
