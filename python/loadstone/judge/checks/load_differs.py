"""load-differs: the sides were not given the same to do, so they cannot be told apart by how they did it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from loadstone.format import units
from loadstone.judge.figures import BESIDE, COMPOSED, clients
from loadstone.judge.finding import Finding, NotLooked, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Scalar, TrialResult

NAME = "load-differs"
# Within an experiment only what is compared can make these differ, and that is what was asked.
FACTS = {"records": "records", "mix": "operations"}
# A count from here on is shown as it was written: it may be no float at all.
MANY = 10**10


def check(pair: Pair, settings: Settings) -> Iterator[Finding | NotLooked]:
    """Clients and loop, and figures of one name that are of different kinds."""
    if any(told(side, "clients") == told(side, "loop") == [] for side in (pair.baselines, pair.contenders)):
        yield NotLooked(NAME, "a side does not say how many clients it had")
    unlike = [
        f"{name} {said(theirs)} against {said(ours)}"
        for name, theirs, ours in (
            ("clients", told(pair.baselines, "clients"), told(pair.contenders, "clients")),
            ("loop", told(pair.baselines, "loop"), told(pair.contenders, "loop")),
        )
        if theirs and ours and set(theirs) != set(ours) and not asked(pair, name)
    ]
    yield from finding(pair, unlike)
    units = kinds(pair.baselines), kinds(pair.contenders)
    for metric in sorted(units[0].keys() & units[1].keys()):
        if len(found := sorted(units[0][metric] | units[1][metric])) > 1:
            message = f"{metric} is in {' and in '.join(each or 'no unit' for each in found)}"
            hint = "these are different things by one name: give them names of their own"
            # What nobody asked for decides nothing.
            asked_for = not settings.metrics or metric in settings.metrics
            yield Finding(NAME, Severity.INVALID if asked_for else Severity.NOTE, message, hint, pair.trials, metric)


def between(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Records and operations, of sides that are not of one experiment."""
    unlike = [
        f"{name} {said(theirs)} against {said(ours)}"
        for fact, name in FACTS.items()
        for theirs, ours in [pair.facts(fact)]
        if theirs and ours and set(theirs) != set(ours) and not pair.asked(fact)
    ]
    if not any(pair.facts("mix")[0] and pair.facts("mix")[1] for _ in FACTS):
        theirs, ours = mix(pair.baselines), mix(pair.contenders)
        unlike += [
            f"{units.percent(theirs.get(name, 0))} of {name.lower()} against {units.percent(ours.get(name, 0))}"
            for name in sorted({*theirs, *ours})
            if theirs and ours and abs(theirs.get(name, 0) - ours.get(name, 0)) > settings.threshold(NAME, "mix")
        ]
    yield from finding(pair, unlike)


def mix(trials: Sequence[TrialResult]) -> dict[str, float]:
    """The share of each kind of operation, by how often each ended; empty where nobody counted them."""
    counts: Counter[str] = Counter()
    for trial in trials:
        for operation, ended in trial.statuses.items():
            if operation.lower() not in BESIDE | COMPOSED:
                counts[operation] += sum(ended.values())
    return {name: count / counts.total() for name, count in counts.items() if counts.total()}


def finding(pair: Pair, unlike: list[str]) -> Iterator[Finding]:
    """All that is unlike in one."""
    if unlike:
        message = f"{pair.baseline} and {pair.contender} had unlike loads: {'; '.join(unlike)}"
        hint = "give both the same load, or make it a dimension; else the difference may be the loads'"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)


def told(trials: Sequence[TrialResult], what: str) -> list[Scalar]:
    """What a side's trials say of their clients or their loop, each once; what is not known is not there."""
    found = [clients(trial) if what == "clients" else trial.loop for trial in trials]
    return list(dict.fromkeys(each for each in found if each is not None))


def asked(pair: Pair, name: str) -> bool:
    """Whether it is what is compared, alone or beside others; a rate is what makes a loop open."""
    compared = pair.by.split(",")
    return name in compared or (name == "loop" and "rate" in compared)


def kinds(trials: Sequence[TrialResult]) -> dict[str, set[str]]:
    """The units of each figure of a side."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        for metric, value in trial.values.items():
            found.setdefault(metric, set()).add(value.unit)
    return found


def said(values: Sequence[Scalar]) -> str:
    """What a side says, the first few."""
    return units.listed([each if isinstance(each, str) else f"{each:,.10g}" for each in map(plain, values)])


def plain(value: Scalar) -> Scalar:
    """A number that can be shown, else its text."""
    return float(value) if isinstance(value, float | int) and abs(value) < MANY else str(value)
