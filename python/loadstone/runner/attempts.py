"""Counts attempts at trials, and tracks completed trials and variants that are excluded after failures."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.plan import PlannedTrial
from loadstone.judge.judgement import VariantKey
from loadstone.results.folder import VALUES, Folder
from loadstone.results.result_set import variant_key, variant_name
from loadstone.results.trial_result import TrialResult
from loadstone.runner.progress import Display
from loadstone.runner.trial import Conductor

# A variant is excluded after this number of consecutive failed attempts, so that the remaining variants can run.
ATTEMPTS_MAX = 3
# If this number of different variants fail consecutively, a common cause is assumed.
FAILING_VARIANTS_MAX = 5


@dataclass
class Attempts:
    """The attempts at the trials in one table of a folder, including attempts before the run was resumed."""

    folder: Folder
    display: Display
    table: str = VALUES
    done: dict[str, TrialResult] = field(default_factory=dict)
    # The number of attempts at each trial.
    numbers: Counter[str] = field(default_factory=Counter)
    # The number of consecutive failed attempts of each variant.
    failed: Counter[VariantKey] = field(default_factory=Counter)
    # The variants of the trials that have failed in this run since the last success.
    failing: list[VariantKey] = field(default_factory=list)

    def restore(self, retry_failed: bool) -> None:
        """Counts the attempts in the folder. With `retry_failed`, failed variants are tried again."""
        for result in self.folder.read_attempts(self.table)[0]:
            self._count(result)
        if retry_failed:
            self.failed.clear()
        for key in self.failed:
            if self.set_aside(key):
                self.display.say(set_aside_message(key), bad=True)

    def make(self, conductor: Conductor, planned: PlannedTrial, *, order: int | None) -> TrialResult:
        """Runs a trial and records the attempt; `order` is the trial's position in the run."""
        number = self.numbers[planned.trial] + 1
        start = TrialResult(
            planned.trial,
            planned.variant.config,
            planned.repeat,
            {},
            end="interrupted",
            order=order,
            start_unix_ns=time.time_ns(),
            attempt=number,
        )
        with self.folder.open_attempt(planned.trial, number, start=start, table=self.table) as files:
            result = conductor.conduct(planned, files, start)
        self.folder.append_trial(result, self.table)
        self._count(result)
        key = variant_key(result.config)
        if result.end == "done":
            self.failing.clear()
        else:
            self.failing.append(key)
        return result

    def _count(self, result: TrialResult) -> None:
        self.numbers[result.trial] = max(self.numbers[result.trial], result.attempt)
        if result.end == "done":
            self.done[result.trial] = result
            self.failed.pop(variant_key(result.config), None)
        elif result.is_failure:
            self.failed[variant_key(result.config)] += 1

    def set_aside(self, key: VariantKey) -> bool:
        """Whether a variant is excluded because its attempts failed."""
        return self.failed[key] >= ATTEMPTS_MAX

    def all_fail(self, variants: int) -> bool:
        """Whether the latest consecutive failures cover all variants, or enough variants to stop the run."""
        return len(set(self.failing)) >= min(variants, FAILING_VARIANTS_MAX)


def set_aside_message(key: VariantKey) -> str:
    """The message about an excluded variant."""
    again = "`loadstone run --resume --retry-failed` tries it again"
    return f"{variant_name(key)} is excluded: its last {ATTEMPTS_MAX} attempts failed; {again}"


def abandonment_error(what: str, last: TrialResult, *, resumable: bool) -> LoadstoneError:
    """The error that ends a run after failures, with the last failure's hint; `resumable` if at least one trial is
    done."""
    hint = last.notes[-1].hint if last.notes else "see the events of the trial"
    then = "; then continue with `loadstone run --resume`" if resumable else ""
    return LoadstoneError(f"{what}; last error: {last.reason}", f"{hint}{then}")
