"""hosts-differ: what is compared did not run on the same hardware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.format import units, wording
from loadstone.judge.checks.guarantees_differ import FACTS as GUARANTEES
from loadstone.judge.checks.guarantees_differ import UNKNOWN
from loadstone.judge.finding import Finding, Looks, NotLooked, Pair, Severity, known
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Scalar, TrialResult

NAME = "hosts-differ"
FACTS = {
    "data_nodes": "data nodes",
    "hosts": "hosts",
    "cpu_model": "processor",
    "cpus": "processors",
    "memory_bytes": "memory",
    "kernel": "kernel",
}

# What must not change during an experiment; the first ones are the same for both sides. Speeds that were measured, as
# device_read_bps, are not among them: each measurement differs a little, and there is no established tolerance.
COMMON = {
    **FACTS,
    "engine": "engine's version",
    "hosts": "number of hosts",
    "data_nodes": "number of data nodes",
    "cpus": "number of processors",
    "file_system": "file system",
}
WITHIN = {
    **COMMON,
    **GUARANTEES,
    "version": "system's version",
    "system_version": "version of the servers",
    "server_version": "exact version of the servers",
    "jvm": "JVM",
    "server_jvm": "JVM of the servers",
}
RESUMED = "a run resumed after a change measures two different things: start a new one"


def check(pair: Pair, settings: Settings) -> Looks:
    """One finding for everything that differs; what only one side states does not count."""
    if not any(pair.facts(fact)[0] and pair.facts(fact)[1] for fact in FACTS):
        yield NotLooked(NAME, "a side's hosts are not known")
    unlike = [
        f"{name} {listed(fact, baseline)} against {listed(fact, contender)}"
        for fact, name in FACTS.items()
        for baseline, contender in [pair.facts(fact)]
        if baseline and contender and not pair.asked(fact) and differ(fact, baseline, contender, settings)
    ]
    if unlike:
        message = f"{pair.baseline} and {pair.contender} ran on different hosts: {units.listed(unlike, len(FACTS))}"
        hint = "run both on the same hosts; otherwise the difference may come from the hosts, not the systems"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)


def across(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Blocks that ran under different software or on different hosts, as after a resume."""
    sides = [{trial.repeat: trial for trial in trials} for trials in (pair.baselines, pair.contenders)]
    for fact, name in WITHIN.items():
        every = [stated(trials, fact) for trials in (pair.baselines, pair.contenders)]
        if not any(varies(fact, values, settings) for values in every):
            continue
        apart = [
            repeat
            for repeat in sorted(sides[0].keys() & sides[1].keys())
            if fact in COMMON and varies(fact, stated([side[repeat] for side in sides], fact), settings)
        ]
        if not apart and (fact in COMMON or pair.asked(fact)):
            if not pair.asked(fact):
                values = listed(fact, list(dict.fromkeys(value for side in every for value in side)))
                message = f"the {name} changed between blocks ({values}); within each block it is the same"
                yield Finding(NAME, Severity.NOTE, message, RESUMED, pair.trials)
            continue
        values = "; ".join(listed(fact, each) for each in every if len(each) > 1 or apart)
        where = f"within blocks {units.listed([str(each) for each in apart])}" if apart else "between repeats"
        yield Finding(NAME, Severity.SUSPECT, f"the {name} changed {where}: {values}", RESUMED, pair.trials)


def alone(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Repeats of a variant that is in no pair: no block has a second trial that shared the change."""
    for fact, name in WITHIN.items():
        if varies(fact, values := stated(trials, fact), settings):
            message = f"the {name} changed between repeats: {listed(fact, values)}"
            yield Finding(NAME, Severity.SUSPECT, message, RESUMED, tuple(trial.trial for trial in trials))


def stated(trials: Sequence[TrialResult], fact: str) -> list[Scalar]:
    """Each value of a fact once, without those that mean unknown."""
    return [value for value in known(trials, fact) if value != UNKNOWN]


def varies(fact: str, values: list[Scalar], settings: Settings) -> bool:
    """Whether the values of what must not change differ."""
    return len(values) > 1 and differ(fact, values[:1], values[1:], settings)


def listed(fact: str, values: list[Scalar]) -> str:
    """A side's values, in words; sizes are scaled, also where the engine recorded them as text."""
    sizes = fact.endswith("_bytes")
    return " and ".join(wording.fact_value(fact, value) if sizes else str(value) for value in values)


def differ(fact: str, baseline: list[Scalar], contender: list[Scalar], settings: Settings) -> bool:
    """Whether the sides differ; small differences in memory do not count, as the kernel's share varies."""
    unlike = set(map(str, baseline)) != set(map(str, contender))
    if unlike and fact == "memory_bytes":
        try:
            sizes = [float(value) for value in (*baseline, *contender)]
        except (ValueError, OverflowError):
            return True
        return max(sizes) - min(sizes) > settings.threshold(NAME, "memory") * max(sizes)
    return unlike
