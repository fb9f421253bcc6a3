"""hosts-differ: what is compared did not run on the same hardware."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.finding import Finding, NotLooked, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Scalar

NAME = "hosts-differ"
FACTS = {
    "data_nodes": "data nodes",
    "hosts": "hosts",
    "cpu_model": "processor",
    "cpus": "processors",
    "memory_bytes": "memory",
    "kernel": "kernel",
}


def check(pair: Pair, settings: Settings) -> Iterator[Finding | NotLooked]:
    """One finding for everything that is unlike; what only one side tells is not."""
    if not any(pair.facts(fact)[0] and pair.facts(fact)[1] for fact in FACTS):
        yield NotLooked(NAME, "a side does not say on which hosts it ran")
    unlike = [
        f"{name} {said(fact, theirs)} against {said(fact, ours)}"
        for fact, name in FACTS.items()
        for theirs, ours in [pair.facts(fact)]
        if theirs and ours and not pair.asked(fact) and differ(fact, theirs, ours, settings)
    ]
    if unlike:
        message = f"{pair.baseline} and {pair.contender} ran on unlike hosts: {units.listed(unlike, len(FACTS))}"
        hint = "run both on the same hosts; else the difference may be the hosts', not the systems'"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)


def said(fact: str, values: list[Scalar]) -> str:
    """What a side says."""
    return " and ".join(written(fact, value) for value in values)


def written(fact: str, value: Scalar) -> str:
    """A fact's value; sizes, which may be texts of an engine, scaled."""
    try:
        return units.size(float(value)) if fact.endswith("_bytes") else str(value)
    except (ValueError, OverflowError):
        return str(value)


def differ(fact: str, theirs: list[Scalar], ours: list[Scalar], settings: Settings) -> bool:
    """Whether the sides differ; of memory a little is the kernel's and varies with it."""
    if fact == "memory_bytes":
        try:
            sizes = [float(value) for value in (*theirs, *ours)]
        except (ValueError, OverflowError):
            return set(theirs) != set(ours)
        return max(sizes) - min(sizes) > settings.threshold(NAME, "memory") * max(sizes)
    return set(theirs) != set(ours)
