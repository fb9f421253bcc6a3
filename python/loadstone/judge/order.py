"""The order of two sides' runs: changes over time affect both sides alike only if the runs alternate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import Literal

from loadstone.format import units
from loadstone.judge.checks import not_steady, sides_differ
from loadstone.judge.finding import ORDER_OF_RUNS, UNKNOWN_OF_BOTH, Finding, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.distributions import student_tail
from loadstone.statistics.estimate import REPEATS_MIN

Order = Literal["alternating", "apart", "unknown"]
# One side may be ahead at any time by this number or share of its runs, because trials may have been repeated.
AHEAD, AHEAD_SHARE = 2, 0.25
# Logs state times in whole seconds, so short overlaps mean nothing.
OVERLAP_MIN = 0.25
# The minimum number of blocks in which each side ran first.
POSITION_MIN = 2
# The minimum number of each side's trials that directly follow a trial of the same side, and of the other side.
AFTER_MIN = 3
POSITION_HINT = "a trial changes the conditions of the next trial: restore them with a command before each trial"
DAYS = "a difference between days would look the same"
# Sides differ in the time of day, as nightly jobs and manual runs do, if their runs span at least this many days and
# always start at least this many hours apart.
DAYS_MIN, HOURS_APART_MIN = 2, 2.0
HOURS_MAX = 3
HOUR_NS, DAY_HOURS = 3.6e12, 24
HOURS_HINT = "run both sides at the same hours: alternately, one after the other"
# This message concerns only comparisons at a single load, not the answer of the search.
OF_SEARCH = "the search measured the sides one after the other"
SEARCHED = "compare the loads that the searches found, or vary the systems at one fixed load"
STATE_START = "if the runs alternated, state each start: `start: 2026-11-27T09:30:00Z` in a facts file next to each log"
DECIDES = (
    "run both sides in one experiment, which interleaves them; or run each side six times, alternately, and compare"
    " `A1,A2,A3,A4,A5,A6 B1,B2,B3,B4,B5,B6`"
)


def list_start_times(results: ResultSet, trials: Sequence[TrialResult], *, by_run: bool) -> list[int] | None:
    """The start times of the trials, or of the runs; None if a time is unknown."""
    first: dict[str, int] = {}
    for trial in trials:
        if trial.start_unix_ns is None:
            return None
        run = results.run_of(trial.trial) if by_run else trial.trial
        first[run] = min(first.get(run, trial.start_unix_ns), trial.start_unix_ns)
    return list(first.values())


def order_of(baseline: Sequence[int] | None, contender: Sequence[int] | None) -> Order:
    """Whether two series of start times alternate, so that neither side is ever far ahead of the other."""
    if baseline is None or contender is None:
        return "unknown"
    sides = sorted(
        [(time, 1 / len(baseline)) for time in baseline] + [(time, -1 / len(contender)) for time in contender]
    )
    ahead = most = 0.0
    for _, step in sides:
        ahead += step
        most = max(most, abs(ahead))
    fewest = min(len(baseline), len(contender))
    return "alternating" if most * fewest <= max(AHEAD, AHEAD_SHARE * fewest) + 0.5 else "apart"


def examine_order(pair: Pair, results: ResultSet) -> tuple[Pair, list[Finding]]:
    """The pair, with blocks only if its trials were interleaved, and the findings on the times of its sides."""
    is_one_run = pair.is_one_run
    starts = [list_start_times(results, side, by_run=not is_one_run) for side in pair.sides]
    order = order_of(*starts)
    if is_one_run:
        pair = replace(pair, blocks=pair.blocks and order != "apart")
    after = [*carryover_findings(pair, results)] if is_one_run else []
    return pair, [*order_findings(pair, order, starts, results), *(after or position_findings(pair, results))]


def order_findings(
    pair: Pair, order: Order, starts: Sequence[Sequence[int] | None], results: ResultSet
) -> Iterator[Finding]:
    """Findings on sides that ran at different times, so that the day, a neighbour or the temperature may differ."""
    runs = [len({results.run_of(trial.trial) for trial in side}) for side in pair.sides]
    repeated = max(len(pair.baselines) - runs[0], len(pair.contenders) - runs[1]) > 0
    message, hours = "", []
    if not pair.is_one_run and repeated and min(runs) < REPEATS_MIN:
        counts = (
            f"{units.count_noun(runs[0], 'run')} of {pair.baseline} and "
            f"{units.count_noun(runs[1], 'run')} of {pair.contender}"
        )
        message = f"{counts}: {DAYS}; 6 alternating runs of each side could decide"
    elif have_overlapped(pair):
        noun = "trials" if pair.is_one_run else "runs"
        message = f"{noun} of {pair.baseline} and {pair.contender} overlapped in time: each disturbed the other"
    elif pair.is_one_run:
        message = (
            ""
            if order != "apart"
            else OF_SEARCH
            if results.question.find
            else "the trials are declared interleaved, but according to their timestamps, one side ran after the other"
        )
    elif order == "apart" and min(len(pair.baselines), len(pair.contenders)) > 1:
        message = f"the runs of {pair.baseline} and {pair.contender} did not alternate: {DAYS}"
    elif hours := list_separate_hours(starts):
        message = (
            f"{pair.baseline} always ran at a different time of day ({hours[0]} UTC) than {pair.contender}"
            f" ({hours[1]}): a difference between these hours would look the same"
        )
    if message:
        # In a search, the sides ran in one experiment, but each at its own loads.
        hint = SEARCHED if pair.is_one_run and results.question.find else HOURS_HINT if hours else DECIDES
        yield Finding(sides_differ.NAME, Severity.SUSPECT, message, hint, pair.trials)
    elif not pair.is_one_run and order == "unknown":
        message = f"{UNKNOWN_OF_BOTH}{ORDER_OF_RUNS}"
        yield Finding(sides_differ.NAME, Severity.UNCHECKED, message, f"{STATE_START}; or {DECIDES}", pair.trials)


def list_separate_hours(starts: Sequence[Sequence[int] | None]) -> list[str]:
    """For each side, the hours at which its runs started; empty unless these differ clearly, over several days."""
    known = [side for side in starts if side]
    times = [*chain(*known)]
    if len(known) < len(starts) or max(times) - min(times) < DAYS_MIN * DAY_HOURS * HOUR_NS:
        return []
    sides = [[time / HOUR_NS % DAY_HOURS for time in side] for side in known]
    apart = [abs(first - second) for first in sides[0] for second in sides[1]]
    if min(min(hours, DAY_HOURS - hours) for hours in apart) < HOURS_APART_MIN:
        return []
    return [units.list_items(sorted({f"{int(hour):02}:00" for hour in side}), HOURS_MAX) for side in sides]


def have_overlapped(pair: Pair) -> bool:
    """Whether runs of the two sides overlapped for more than OVERLAP_MIN of the shorter run; in one run, whether trials
    overlapped in most blocks, since a clock may have been set back once."""
    windows = [
        [
            (trial.repeat, trial.start_unix_ns, trial.start_unix_ns + length)
            for trial in trials
            if trial.start_unix_ns is not None and (length := trial.value("runtime"))
        ]
        for trials in pair.sides
    ]
    overlapping = sum(
        min(end, other_end) - max(start, other_start) > OVERLAP_MIN * min(end - start, other_end - other_start)
        for repeat, start, end in windows[0]
        for other_repeat, other_start, other_end in windows[1]
        if repeat == other_repeat or not pair.is_one_run
    )
    return 2 * overlapping > min(map(len, windows)) if pair.is_one_run else overlapping > 0


def position_findings(pair: Pair, results: ResultSet) -> Iterator[Finding]:
    """A finding if the trial that runs second in a block differs from the first, whichever side it belongs to.

    In random order, such a position effect is noise, not bias, and the claim allows for it. The effect is the mean
    step from first to second, averaged separately over the blocks in which each side ran first, so that the difference
    between the sides cancels.
    """
    metric = results.deciding_metric
    sides = [{trial.repeat: trial for trial in trials} for trials in pair.sides]
    steps: tuple[list[float], list[float]] = ([], [])
    for block in sides[0].keys() & sides[1].keys() if pair.is_one_run and pair.blocks else ():
        both = [side[block] for side in sides]
        figures = [trial.value(metric) or 0.0 for trial in both]
        if None in (both[0].order, both[1].order) or min(figures) <= 0:
            continue
        later = int((both[1].order or 0) > (both[0].order or 0))
        steps[later].append(math.log(figures[later] / figures[1 - later]))
    counts = [len(part) for part in steps]
    if min(counts) < POSITION_MIN:
        return
    effect = fmean(map(fmean, steps))
    squares = sum((step - fmean(part)) ** 2 for part in steps for step in part)
    error = math.sqrt(squares / (sum(counts) - 2) * sum(1 / count for count in counts)) / 2
    p = 2 * student_tail(abs(effect) / error, sum(counts) - 2) if error else 0.0
    settings = Settings.from_question(results.question)
    alpha, least = (settings.check_threshold(not_steady.NAME, name) for name in ("together", "effect"))
    if p < alpha and abs(math.expm1(effect)) > least:
        message = (
            f"the trial that ran second in a block has {units.format_ratio(math.exp(effect))} the {metric} of the first"
        )
        yield Finding(not_steady.NAME, Severity.NOTE, f"{message} (p={p:.2g})", POSITION_HINT, pair.trials, metric)


def carryover_findings(pair: Pair, results: ResultSet) -> Iterator[Finding]:
    """A finding if one side is slower or faster when it runs directly after the other side, but not vice versa.

    In random order, an effect on both sides is noise. An effect on one side only (a carryover, as in crossover trials)
    is a bias: it changes the ratio. For each side, the trials that follow a trial of the same side are compared with
    the trials that follow a trial of the other side. The two differences are then compared with each other.
    """
    metric = results.deciding_metric
    placed = {trial.order: (side, trial) for side, trials in enumerate(pair.sides) for trial in trials}
    # The logarithms of each side's figures, after its own side and after the other side.
    parts: tuple[list[list[float]], list[list[float]]] = ([[], []], [[], []])
    for order, (side, trial) in placed.items():
        earlier, figure = placed.get(None if order is None else order - 1), trial.value(metric) or 0.0
        if order is not None and earlier is not None and figure > 0:
            parts[side][side != earlier[0]].append(math.log(figure))
    groups = [*parts[0], *parts[1]]
    degrees = sum(map(len, groups)) - len(groups)
    if min(map(len, groups)) < AFTER_MIN:
        return
    effects = [fmean(other) - fmean(own) for own, other in parts]
    squares = sum((figure - fmean(part)) ** 2 for part in groups for figure in part)
    error = math.sqrt(squares / degrees * sum(1 / len(part) for part in groups))
    difference = effects[1] - effects[0]
    p = 2 * student_tail(abs(difference) / error, degrees) if error else float(not difference)
    settings = Settings.from_question(results.question)
    alpha, least = (settings.check_threshold(not_steady.NAME, name) for name in ("together", "effect"))
    if p < alpha and abs(math.expm1(difference)) > least:
        side = int(abs(effects[1]) > abs(effects[0]))
        name, other = (pair.baseline, pair.contender)[:: 1 if side == 0 else -1]
        factors = [units.format_ratio(math.exp(effects[index])) for index in (side, 1 - side)]
        message = (
            f"directly after {other}, {name} has {factors[0]} the {metric} that it has after itself; {other} directly"
            f" after {name} has {factors[1]} (p={p:.2g})"
        )
        yield Finding(not_steady.NAME, Severity.SUSPECT, message, POSITION_HINT, pair.trials, metric)
