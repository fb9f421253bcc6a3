"""The checks, by what they look at. Their names are those of loadstone.judge.settings.DEFAULTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadstone.judge.checks import (
    between_runs,
    carried_over,
    client_limited,
    clock,
    errors,
    generator_limited,
    guarantees_differ,
    hosts_differ,
    impossible,
    incomplete,
    interference,
    littles_law,
    load_differs,
    lost_segment,
    not_steady,
    page_cache,
    rate_not_held,
    retried,
    server_died,
    stalled,
    unverified,
)
from loadstone.judge.finding import Finding
from loadstone.judge.pair import Pair
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult

# Checks of one trial.
TRIAL: tuple[Callable[[TrialResult, Settings], Iterator[Finding]], ...] = (
    lost_segment.check,
    server_died.check,
    retried.check,
    incomplete.check,
    impossible.check,
    littles_law.check,
    generator_limited.check,
    client_limited.check,
    rate_not_held.check,
    carried_over.check,
    clock.check,
    errors.check,
    unverified.check,
    page_cache.check,
    interference.check,
    not_steady.compiling,
)
# Checks of one trial's course over time.
SERIES: tuple[Callable[[TrialResult, Series, Settings], Iterator[Finding]], ...] = (
    rate_not_held.course,
    not_steady.check,
    stalled.check,
)
# Checks of two variants that are compared. too-few-samples, noisy, incomplete and impossible also look at one variant
# (loadstone.judge.findings).
PairCheck = Callable[[Pair, Settings], Iterator[Finding]]
PAIR: tuple[PairCheck, ...] = (hosts_differ.check, load_differs.check, guarantees_differ.check)
# Those of two that did not take turns.
BETWEEN: tuple[PairCheck, ...] = (load_differs.between, between_runs.check)
# Checks that know everything the engine's note of their name does, if the trial has their figures.
DECIDED: dict[str, Callable[[TrialResult], bool]] = {
    generator_limited.NAME: generator_limited.decided,
    client_limited.NAME: client_limited.decided,
    errors.NAME: errors.decided,
}
