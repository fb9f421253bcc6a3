"""guarantees-differ: one side guarantees more than the other, and pays for it."""

from __future__ import annotations

from loadstone.judge.finding import Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Scalar

NAME = "guarantees-differ"
DURABILITY = "durability"
FACTS = {
    DURABILITY: "durability",
    "replication": "replication",
    "replication_acknowledged": "replicas acknowledged",
    "consistency": "consistency",
}
# Values that mean unknown: they count as nothing stated.
UNKNOWN = "unknown"
# Results from before `interval` existed have `none` for it, and the same `how`.
RENAMED = {"none", "interval"}
# A fact that follows from another guarantee is part of it: QUORUM of 3 copies acknowledges 2.
FOLLOWS = {"replication_acknowledged": ("replication", "consistency")}


def check(pair: Pair, _: Settings) -> Looks:
    """Each guarantee that differs, as kept; a note where it is what is compared, or where one side is unknown."""
    how = pair.facts("how")
    for fact, name in FACTS.items():
        baseline, contender = ([each for each in side if each != UNKNOWN] for side in pair.facts(fact))
        if not baseline and not contender and fact == DURABILITY:
            yield from silent_on_both(pair)
        if set(map(str, baseline)) == set(map(str, contender)):
            continue
        if not baseline or not contender:
            silent = pair.contender if baseline else pair.baseline
            message = f"{silent} does not state its {name}; the other side keeps {listed(baseline or contender)}"
            if reasons := pair.facts(f"{fact}_unknown")[1 if baseline else 0]:
                message += f": {listed(reasons)}"
            severity = Severity.SUSPECT if fact == DURABILITY else Severity.NOTE
            yield Finding(NAME, severity, message, f"state it: --fact {fact}=…", pair.trials)
            continue
        message = f"{pair.baseline} keeps {name} {listed(baseline)}, {pair.contender} {listed(contender)}"
        severity, hint = Severity.INVALID, f"give both the same {name}, or compare by it"
        if fact == DURABILITY and {*baseline, *contender} == RENAMED and how[0] == how[1] and len(how[0]) == 1:
            message += f", both by {how[0][0]}"
            severity, hint = Severity.NOTE, "older versions call `interval` `none`"
        elif pair.asked(fact) or any(asked_and_differs(pair, source) for source in FOLLOWS.get(fact, ())):
            severity, hint = Severity.NOTE, "that is what is compared: the difference is what it costs"
            if any(len(set(map(str, side))) > 1 for side in (baseline, contender)):
                severity = Severity.SUSPECT
                hint = f"repeats of one side differ in it, so the difference is not its cost: compare by {name} as well"
        yield Finding(NAME, severity, message, hint, pair.trials)


def silent_on_both(pair: Pair) -> Looks:
    """Neither side states what survives; every store of Loadstone does."""
    if any("engine" in trial.facts for trial in (*pair.baselines, *pair.contenders)):
        message = f"neither {pair.baseline} nor {pair.contender} states its durability"
        yield Finding(NAME, Severity.SUSPECT, message, f"state it: --fact {DURABILITY}=…", pair.trials)
    else:
        yield NotLooked(NAME, "neither side states its durability")


def asked_and_differs(pair: Pair, fact: str) -> bool:
    """Whether the sides differ in a fact that is the one compared."""
    baseline, contender = pair.facts(fact)
    return pair.asked(fact) and set(map(str, baseline)) != set(map(str, contender))


def listed(values: list[Scalar]) -> str:
    """A side's values, in words."""
    return " and ".join(map(str, values))
