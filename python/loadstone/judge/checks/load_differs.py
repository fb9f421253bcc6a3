"""load-differs: the sides were not given the same work, so their figures do not compare the systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.figures import COMPOSED, clients, ended
from loadstone.judge.finding import Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.projection import POOLED
from loadstone.results.result_set import natural
from loadstone.results.trial_result import Scalar, TrialResult

NAME = "load-differs"
# Within an experiment these differ only because of what is compared, and that was asked for.
FACTS = {"records": "records", "mix": "operations"}
# A count from here on is shown as written: a float may not hold it.
MANY = 10**10
# So many shares of a side are listed.
MIXED = 4


def check(pair: Pair, settings: Settings) -> Looks:
    """Clients and loop, and figures with the same name but different units."""
    sides = {name: (values_of(pair.baselines, name), values_of(pair.contenders, name)) for name in ("clients", "loop")}
    if not all(map(any, zip(*sides.values(), strict=True))):
        yield NotLooked(NAME, "a side's number of clients is not known")
    yield from finding(pair, apart({name: both for name, both in sides.items() if not asked(pair, name)}))
    yield from pooled(pair, settings)
    units = kinds(pair.baselines), kinds(pair.contenders)
    for metric in sorted(units[0].keys() & units[1].keys()):
        if len(found := sorted(units[0][metric] | units[1][metric])) > 1:
            message = f"{metric} is in {' and in '.join(each or 'no unit' for each in found)}"
            hint = "these are different things under one name: rename one of them"
            # A metric that was not asked for decides nothing.
            asked_for = not settings.metrics or metric in settings.metrics
            yield Finding(NAME, Severity.INVALID if asked_for else Severity.NOTE, message, hint, pair.trials, metric)


def pooled(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Dimensions that the sides pooled in different shares: a difference may be theirs.

    One that has a single value on each side belongs to what is compared.
    """
    facts = dict.fromkeys(name for trial in (*pair.baselines, *pair.contenders) for name in trial.facts)
    for fact in (name for name in facts if name.startswith(POOLED)):
        sides = [
            {value: count / len(trials) for value, count in Counter(trial.facts.get(fact) for trial in trials).items()}
            for trials in (pair.baselines, pair.contenders)
        ]
        most = max(abs(sides[0].get(value, 0) - sides[1].get(value, 0)) for value in {*sides[0], *sides[1]})
        if most <= settings.threshold(NAME, "mix") or max(map(len, sides)) == 1:
            continue
        name = fact.removeprefix(POOLED)
        shares = " against ".join(
            units.listed([f"{units.percent(side[value])} of {value}" for value in sorted(side, key=natural)], MIXED)
            for side in sides
        )
        message = f"{pair.baseline} and {pair.contender} pool {name} in different shares: {shares}"
        yield Finding(NAME, Severity.SUSPECT, message, f"add {name} to --row, so that it is not pooled", pair.trials)


def between(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Records and operations of sides from different experiments."""
    unlike = apart({name: pair.facts(fact) for fact, name in FACTS.items() if not pair.asked(fact)})
    if not all(pair.facts("mix")):
        baseline, contender = mix(pair.baselines), mix(pair.contenders)
        unlike += [
            f"{units.percent(baseline.get(name, 0))} of {name} against {units.percent(contender.get(name, 0))}"
            for name in sorted({*baseline, *contender})
            if baseline
            and contender
            and abs(baseline.get(name, 0) - contender.get(name, 0)) > settings.threshold(NAME, "mix")
        ]
    yield from finding(pair, unlike)


def mix(trials: Sequence[TrialResult]) -> dict[str, float]:
    """The share of each kind of operation, by how often each ended; empty where they were not counted."""
    counts: Counter[str] = Counter()
    for trial in trials:
        for kind, _, count in ended(trial):
            if kind not in COMPOSED:
                counts[kind] += count
    return {name: count / counts.total() for name, count in counts.items() if counts.total()}


def apart(sides: Mapping[str, tuple[list[Scalar], list[Scalar]]]) -> list[str]:
    """What differs, in words; what only one side states does not count."""
    return [
        f"{name} {listed(baseline)} against {listed(contender)}"
        for name, (baseline, contender) in sides.items()
        if baseline and contender and set(baseline) != set(contender)
    ]


def finding(pair: Pair, unlike: list[str]) -> Iterator[Finding]:
    """One finding for everything that differs."""
    if unlike:
        message = f"{pair.baseline} and {pair.contender} had different loads: {'; '.join(unlike)}"
        hint = "give both the same load, or make it a dimension; otherwise the difference may come from the load"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)


def values_of(trials: Sequence[TrialResult], what: str) -> list[Scalar]:
    """The clients or the loop of a side's trials, each value once; unknown ones are left out."""
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


def listed(values: Sequence[Scalar]) -> str:
    """A side's first few values, in words."""
    return units.listed([each if isinstance(each, str) else f"{each:,.10g}" for each in map(plain, values)])


def plain(value: Scalar) -> Scalar:
    """A number that can be shown, else its text."""
    return float(value) if isinstance(value, float | int) and abs(value) < MANY else str(value)
