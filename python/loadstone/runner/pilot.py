"""The pilot block: every variant once before the others, to learn how long a warm-up must be and whether all can run.

Its trials have no warm-up and a long window: the longest warm-up that may be asked for, and twice the window of the
experiment. They are kept in `pilot.jsonl` and count nowhere. What was learned is in `pilot.json`, so that a run that is
resumed uses the same warm-up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from loadstone.errors import LoadstoneError
from loadstone.experiment import order
from loadstone.experiment.model import Experiment
from loadstone.experiment.plan import Plan, PlannedTrial
from loadstone.format.quantity import written
from loadstone.judge.finding import Severity
from loadstone.judge.findings import judge_trial
from loadstone.judge.settings import Settings
from loadstone.results import lines
from loadstone.results.folder import PILOT, PILOT_TRIALS, Folder, pretty
from loadstone.results.result_set import first_metric
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import statistic
from loadstone.runner.progress import Display, Whole
from loadstone.runner.trial import Conductor
from loadstone.statistics.steady import pooled_warm_up_end

# The longest warm-up that is asked for, in windows of the experiment.
CAP_WINDOWS = 1.0
WINDOWS = 2.0
# A warm-up is a whole number of these.
STEP_SECONDS = 0.5
COLUMNS = {"p50": "p50_ns", "p99": "p99_ns"}


@dataclass(frozen=True)
class Learned:
    """What a pilot block found: pilot.json. All in seconds."""

    warmup_seconds: float
    cap_seconds: float
    # Whether more would have been asked for.
    capped: bool
    # The warm-up of each group of variants with the same data on the same system, of which the longest decides.
    groups_seconds: tuple[float, ...]


@dataclass
class Pilot:
    """The pilot block of one run."""

    experiment: Experiment
    plan: Plan
    folder: Folder
    shown: Display
    # A guess at how long a trial takes.
    seconds_each: float

    def warmup(self, conductor: Conductor) -> float:
        """How long every trial is to warm up, in seconds; runs what is missing of the block.

        Raises LoadstoneError when no variant can run.
        """
        path = self.folder.path / PILOT
        if path.exists():
            return float(json.loads(path.read_bytes())["warmup_seconds"])
        done = {trial.trial: trial for trial in self.folder.pilots()}
        conductor.experiment = self.long()
        self.shown.say(f"a pilot block of {len(self.plan.variants)} trials, which do not count, finds the warm-up")
        whole = Whole(f"{self.folder.name}, pilot", len(self.plan.variants), len(done), self.seconds_each)
        self.shown.plan(whole)
        for each in self.block():
            if each.trial not in done:
                done[each.trial] = self.trial(conductor, each)
                whole.finish()
        found = self.learned(list(done.values()))
        lines.replace(path, pretty(asdict(found)))
        capped = ", the most that is asked for" if found.capped else ""
        self.shown.say(f"every trial warms up for {written(found.warmup_seconds)}{capped} ({path.name})")
        return found.warmup_seconds

    def long(self) -> Experiment:
        """The experiment with the windows of the pilot."""
        duration = self.experiment.measure.duration
        assert duration is not None, "an experiment with a pilot has a window"
        measure = {"warmup": 0.0, "duration": (CAP_WINDOWS + WINDOWS) * duration}
        return self.experiment.model_copy(update={"measure": self.experiment.measure.model_copy(update=measure)})

    def block(self) -> Iterator[PlannedTrial]:
        """Every variant once, in random order."""
        for place, index in enumerate(order.permutation(self.plan.keys, self.experiment.seed, 0)):
            variant = self.plan.variants[index]
            yield PlannedTrial(f"pilot-{place:0{order.DIGITS_MIN}}-{variant.slug}", variant, 0, place)

    def trial(self, conductor: Conductor, planned: PlannedTrial) -> TrialResult:
        """Runs one of them, writes it down, and says what would cost hours if it were said only at the end."""
        self.shown.trial(planned.trial)
        with self.folder.trial(planned.trial) as files:
            result = replace(conductor.conduct(planned, files), order=None)
        lines.append(self.folder.path / PILOT_TRIALS, {**result.to_json(), "counts": False})
        settings = Settings.of(self.experiment.question_for_judge())
        for finding in judge_trial(result, self.folder.series(planned.trial), settings):
            # Without a warm-up no window is steady.
            if finding.severity == Severity.INVALID:
                self.shown.say(f"{result.trial}: {finding.check}: {finding.message}", bad=True)
        return result

    def learned(self, trials: Sequence[TrialResult]) -> Learned:
        """The warm-up, and where it comes from. Raises LoadstoneError when no trial has a course."""
        known = [(trial, series) for trial in trials if (series := self.folder.series(trial.trial)) is not None]
        if not known:
            last = trials[-1]
            hint = last.notes[-1].hint if last.notes else "see its events"
            raise LoadstoneError(f"no variant can run; last error: {last.reason}", hint)
        duration = self.experiment.measure.duration or 0.0
        cap = CAP_WINDOWS * duration
        pools: dict[str, list[Series]] = {}
        # Those with the same data on the same system warm up alike, so that one noisy trial does not decide for all.
        keys = {order.key(variant.config): variant.load_key for variant in self.plan.variants}
        for trial, series in known:
            pools.setdefault(keys[order.key(trial.config)], []).append(series)
        column = COLUMNS.get(statistic(first_metric(trials, self.experiment.compare.metrics)))
        ends = [seconds_until_steady(pool, column) for pool in pools.values()]
        wanted = math.ceil(max(ends) / STEP_SECONDS) * STEP_SECONDS
        warmup = min(max(wanted, STEP_SECONDS), cap)
        return Learned(warmup, cap, wanted > cap, tuple(ends))


def seconds_until_steady(pool: Sequence[Series], column: str | None) -> float:
    """When throughput, and the latency that is compared, are steady in all of some trials together (MSER)."""
    ends = [pooled_warm_up_end([series.whole_rates for series in pool])]
    if column is not None:
        latencies = [getattr(series, column)[: len(series.whole_rates)] for series in pool]
        ends.append(pooled_warm_up_end([each for each in latencies if None not in each]))
    starts = max((series.start_seconds for series in pool), key=len)
    return starts[min(max(ends), len(starts) - 1)]
