"""sides-differ: the sides, or the repeats of one side, did different things or ran under different conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median

from loadstone.format import units, wording
from loadstone.judge.checks import page_cache
from loadstone.judge.finding import UNKNOWN_OF_BOTH, Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.record import UNKNOWN, missing, mix, record
from loadstone.judge.settings import Settings
from loadstone.results.projection import POOLED
from loadstone.results.result_set import natural
from loadstone.results.trial_result import Scalar, TrialResult


def names(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())


NAME = "sides-differ"
DURABILITY = "durability"
# A stronger guarantee costs time: such a comparison measures the guarantee.
GUARANTEES = (DURABILITY, "replication", "replication_acknowledged", "consistency")
# Where these differ, the figures are of different quantities.
ARITHMETIC = ("work", "loop", "rate", "latency")
# Work that ends by itself: its time is the result.
ENDING = ("testdfsio", "dfsio", "sort", "hbase-pe")
# Results from before `interval` existed have `none` for it, and the same `how`.
RENAMED = {"none", "interval"}
# The names of facts whose own name is not plain.
NAMES = {
    "cpu_model": "processor",
    "cpus": "number of processors",
    "memory_bytes": "memory",
    "hosts": "number of hosts",
    "data_nodes": "number of data nodes",
    "engine": "engine's version",
    "version": "system's version",
    "system_version": "version of the servers",
    "server_version": "exact version of the servers",
    "jvm": "JVM",
    "server_jvm": "JVM of the servers",
    DURABILITY: DURABILITY,
    "replication_acknowledged": "replicas acknowledged",
    "mix": "operations",
    "record_bytes": "size of a record",
    "records": "number of records",
    "distribution": "distribution of requests",
    "window": "length of the window",
    "latency": "meaning of latency",
    "work": "kind of work",
    "clients": "number of clients",
    "device_read_bps": "speed of the device",
}
# What a system is: it follows from the choice of the system, as does everything that its store and servers state.
SYSTEM = names(
    """
    store system version system_version server_version jvm server_jvm cache_bytes map_bytes compression how
    directory client connections executors spin data_in binding networked heap mode nodes driver
    """
)
SYSTEM_PREFIXES = ("store.", "server.", "table.")
# What the load does, and what may be known of it.
WORK = names(
    """
    work records record_bytes mix distribution files file_bytes bytes buffer_bytes action access sync test phase
    rows row_bytes value_bytes block_size mode iodepth jobs numjobs direct window operations bytes_per_read
    device
    """
)
STORAGE = names(
    """
    file_system device device_read_bps device_write_bps directory
    """
)
# The written consequences of a compared dimension: names of facts, or of a group of facts.
CONSEQUENCES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("system", "store", "variant", "run"), ("system",)),
    "clients": ("connections", "executors", "work.insert_lag"),
    "rate": ("loop", "latency", "arrival", "pace.rate", "pace.mode", "pace.arrival"),
    "loop": ("rate", "latency", "arrival", "pace.rate", "pace.mode", "pace.arrival"),
    "workload": ("work",),
    "test": ("work",),
    DURABILITY: ("how",),
    "replication": ("replication_acknowledged",),
    "consistency": ("replication_acknowledged",),
}
RESUMED = "a run resumed after a change measures two different things: start a new one"
MANY = 10**10
# So many values of a side, and of differences, are listed.
VALUES, DIFFERENCES = 4, 6
# From counts, a repeat's own mix is known less well than a side's.
COARSE = 5


def check(pair: Pair, settings: Settings) -> Looks:
    """Every fact that is known on both sides, each with both values."""
    records = {each.trial: record(each) for each in (*pair.baselines, *pair.contenders)}
    sides = [[records[each.trial] for each in trials] for trials in (pair.baselines, pair.contenders)]
    unlike: dict[Severity, list[str]] = {Severity.SUSPECT: [], Severity.INVALID: [], Severity.NOTE: []}
    for name in dict.fromkeys(chain.from_iterable(records.values())):
        baseline, contender = (distinct(name, side, settings) for side in sides)
        if not baseline or not contender or name == "operations":
            continue
        several = max(len(baseline), len(contender)) > 1
        if not several and not differ(name, baseline, contender, settings):
            continue
        if is_pooled(pair, name) or (name == "window" and not apart_in_length(sides, settings)):
            continue
        is_allowed = allowed(pair, name)
        if several:
            yield from changed(pair, name, (baseline, contender), is_allowed, settings)
            continue
        text = f"{named(name)} ({listed(name, baseline)} against {listed(name, contender)})"
        if not is_allowed:
            older = name == DURABILITY and {*baseline, *contender} == RENAMED and same_how(sides)
            bad = name in GUARANTEES or name in ARITHMETIC
            unlike[Severity.NOTE if older else Severity.INVALID if bad else Severity.SUSPECT].append(text)
        elif name in GUARANTEES:
            unlike[Severity.NOTE].append(text)
    unlike[Severity.SUSPECT] += [*mixes(pair, settings), *cached(pair, settings)]
    for severity, texts in unlike.items():
        if texts:
            yield finding(pair, severity, units.listed(texts, DIFFERENCES))
    yield from pooled(pair, settings)
    yield from two_units(pair, settings)
    yield from durability(pair, records)
    if not pair.one_run:
        counted = all(mix(trials) for trials in (pair.baselines, pair.contenders))
        yield from unknown(pair, missing([*records.values()], counted))


def finding(pair: Pair, severity: Severity, text: str) -> Finding:
    """One finding for everything that differs with one severity."""
    message = f"{pair.baseline} and {pair.contender} differ in {text}"
    hint = "give both the same, or compare by it; if it is what is compared, name the fact in `compare.guarantees`"
    if severity == Severity.NOTE:
        hint = "that is what is compared: the difference is what it costs"
    return Finding(NAME, severity, message, hint, pair.trials)


def unknown(pair: Pair, names: Sequence[str]) -> Iterator[Finding]:
    """What the comparison needs and nobody states: a claim then has a condition."""
    if names:
        text = units.listed([named(name) for name in names], len(names))
        message = f"{UNKNOWN_OF_BOTH}{text}"
        hint = f"state it for either side: {' '.join(f'--fact {name}=…' for name in names)}"
        yield Finding(NAME, Severity.UNCHECKED, message, hint, pair.trials)


def allowed(pair: Pair, name: str) -> bool:
    """Whether a fact is what is compared, or a written consequence of it."""
    dimensions = pair.by.split(",")
    written = {each for dimension in dimensions for each in (dimension, *CONSEQUENCES.get(dimension, ()))}
    written |= {each for fact in GUARANTEES if pair.asked(fact) for each in CONSEQUENCES.get(fact, ())}
    return (
        pair.asked(name)
        or not written.isdisjoint({name, *groups(name, pair)})
        or not pair.groups.isdisjoint({name, *groups(name, pair)})
    )


def groups(name: str, pair: Pair) -> Iterator[str]:
    """The groups of facts that one belongs to."""
    if name in GUARANTEES:
        return
    of_system = any(name in trial.of_system for trial in (*pair.baselines, *pair.contenders))
    if name in SYSTEM or name.startswith(SYSTEM_PREFIXES) or of_system:
        yield "system"
    if name in WORK or name.startswith("work."):
        yield "work"
    if name in STORAGE or name.endswith("file_system"):
        yield "storage"


def changed(
    pair: Pair, name: str, sides: tuple[list[Scalar], list[Scalar]], is_allowed: bool, settings: Settings
) -> Iterator[Finding]:
    """A fact that changed between the repeats of a side, as after a resume."""
    by_block = [
        {trial.repeat: record(trial).get(name) for trial in trials} for trials in (pair.baselines, pair.contenders)
    ]
    blocks = sorted(by_block[0].keys() & by_block[1].keys())
    both = {block: [each for side in by_block if (each := side[block]) is not None] for block in blocks}
    apart = [
        block for block, values in both.items() if len(values) > 1 and differ(name, values[:1], values[1:], settings)
    ]
    everything = list(dict.fromkeys(value for side in sides for value in side))
    # A system's own settings may differ between the sides, but not between repeats of one.
    own = is_allowed or "system" in groups(name, pair) or name in GUARANTEES
    if pair.blocks and not apart and not own:
        message = (
            f"the {named(name)} changed between blocks ({listed(name, everything)}); within each block it is the same"
        )
        yield Finding(NAME, Severity.NOTE, message, RESUMED, pair.trials)
        return
    within = pair.blocks and bool(apart) and not own
    where = f"within blocks {units.listed([str(each) for each in apart])}" if within else "between repeats"
    values = "; ".join(listed(name, side) for side in sides if len(side) > 1 or within)
    bad = name in (*ARITHMETIC, *GUARANTEES) and not is_allowed and differ(name, *sides, settings)
    severity = Severity.INVALID if bad else Severity.SUSPECT
    yield Finding(NAME, severity, f"the {named(name)} changed {where}: {values}", RESUMED, pair.trials)


def is_pooled(pair: Pair, name: str) -> bool:
    """Whether the trials of a side were pooled over this; their shares have a finding of their own."""
    return name.startswith(POOLED) or any(
        f"{POOLED}{name}" in trial.facts for trial in (*pair.baselines, *pair.contenders)
    )


def alone(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Repeats of a variant that is in no pair: no block has a second trial that shared the change."""
    records = [record(trial) for trial in trials]
    for name in dict.fromkeys(chain.from_iterable(records)):
        values = distinct(name, records, settings)
        if len(values) > 1 and name not in ("operations", "window", "rate"):
            message = f"the {named(name)} changed between repeats: {listed(name, values)}"
            yield Finding(NAME, Severity.SUSPECT, message, RESUMED, tuple(trial.trial for trial in trials))


def distinct(name: str, side: Sequence[Mapping[str, Scalar]], settings: Settings) -> list[Scalar]:
    """The values of a fact that differ, in the order of first appearance."""
    found: list[Scalar] = []
    for each in side:
        if name in each and (not found or differ(name, found, [each[name]], settings)):
            found.append(each[name])
    return list(dict.fromkeys(found))


def differ(name: str, some: Sequence[Scalar], others: Sequence[Scalar], settings: Settings) -> bool:
    """Whether values differ by more than their tolerance; a setting may be a number where a server's fact is text."""
    if set(map(str, some)) == set(map(str, others)):
        return False
    share = tolerance(name, settings)
    try:
        numbers = [float(value) for value in (*some, *others)]
    except (ValueError, OverflowError):
        return True
    return max(numbers) - min(numbers) > share * max(map(abs, numbers))


def tolerance(name: str, settings: Settings) -> float:
    """By which share of the larger one two values may differ: what is measured is never twice the same."""
    if name == "memory_bytes":
        return settings.threshold(NAME, "memory")
    measured = name.endswith("_bps") or name in ("rate", "window", "bytes_per_read")
    return settings.threshold(NAME, "measured") if measured else 0.0


def apart_in_length(sides: Sequence[Sequence[Mapping[str, Scalar]]], settings: Settings) -> bool:
    """Whether windows differ for another reason than that the faster side needs less time for the same work."""
    if any(each.get("work") in ENDING for side in sides for each in side):
        return False
    counts = [[float(each["operations"]) for each in side if "operations" in each] for side in sides]
    if not all(counts):
        return True
    least, most = sorted(map(median, counts))
    return most - least > settings.threshold(NAME, "mix") * most


def same_how(sides: Sequence[Sequence[Mapping[str, Scalar]]]) -> bool:
    """Whether both sides keep their guarantee in one way."""
    return len({each.get("how") for side in sides for each in side} - {None}) == 1


def mixes(pair: Pair, settings: Settings) -> Iterator[str]:
    """Shares of operations, where no fact states them; also those of single repeats."""
    if all(pair.facts("mix")) or "mix" in pair.groups or allowed(pair, "mix"):
        return
    sides, most = (pair.baselines, pair.contenders), settings.threshold(NAME, "mix")
    first, second = map(mix, sides)
    if not first or not second:
        return
    for kind in sorted({*first, *second}):
        shares = first.get(kind, 0.0), second.get(kind, 0.0)
        own = [mix([trial]).get(kind, 0.0) for trials in sides for trial in trials if mix([trial])]
        if abs(shares[0] - shares[1]) > most:
            yield f"the share of {kind} ({units.percent(shares[0])} against {units.percent(shares[1])})"
        elif max(own) - min(own) > COARSE * most:
            yield f"the share of {kind} between repeats ({units.percent(min(own))} to {units.percent(max(own))})"


def cached(pair: Pair, settings: Settings) -> Iterator[str]:
    """Reads that the device served on one side, and the page cache on the other."""
    shares = [
        [share for trial in trials if (share := page_cache.uncached(trial)) is not None]
        for trials in (pair.baselines, pair.contenders)
    ]
    if not all(shares) or allowed(pair, "device"):
        return
    least, most = sorted(shares, key=median)
    if max(least) < settings.threshold(page_cache.NAME, "share") and min(most) > settings.threshold(
        page_cache.NAME, "claimed_share"
    ):
        first, second = (units.percent(median(side)) for side in shares)
        yield f"what serves reads (the device {first} against {second})"


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
            units.listed([f"{units.percent(side[value])} of {value}" for value in sorted(side, key=natural)], VALUES)
            for side in sides
        )
        message = f"{pair.baseline} and {pair.contender} pool {name} in different shares: {shares}"
        yield Finding(NAME, Severity.SUSPECT, message, f"add {name} to --row, so that it is not pooled", pair.trials)


def two_units(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Figures of one name in two units."""
    kinds: list[dict[str, set[str]]] = [{}, {}]
    for found, trials in zip(kinds, (pair.baselines, pair.contenders), strict=True):
        for trial in trials:
            for metric, value in trial.values.items():
                found.setdefault(metric, set()).add(value.unit)
    for metric in sorted(kinds[0].keys() & kinds[1].keys()):
        if len(every := sorted(kinds[0][metric] | kinds[1][metric])) > 1:
            message = f"{metric} is in {' and in '.join(each or 'no unit' for each in every)}"
            hint = "these are different things under one name: rename one of them"
            # A metric that was not asked for decides nothing.
            asked_for = not settings.metrics or metric in settings.metrics
            yield Finding(NAME, Severity.INVALID if asked_for else Severity.NOTE, message, hint, pair.trials, metric)


def durability(pair: Pair, records: Mapping[str, Mapping[str, Scalar]]) -> Looks:
    """A side that does not state what its writes survive; every store of Loadstone does."""
    states = [
        [each.facts[DURABILITY] for each in trials if each.facts.get(DURABILITY, UNKNOWN) != UNKNOWN]
        for trials in (pair.baselines, pair.contenders)
    ]
    hint = f"state it: --fact {DURABILITY}=…"
    if all(states):
        return
    if any(states):
        silent, trials = (pair.contender, pair.contenders) if states[0] else (pair.baseline, pair.baselines)
        kept = [*states[0], *states[1]][0]
        message = f"{silent} does not state its durability; the other side keeps {kept}"
        if reason := next(
            (each.facts[f"{DURABILITY}_unknown"] for each in trials if f"{DURABILITY}_unknown" in each.facts), ""
        ):
            message += f": {reason}"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)
    elif any("engine" in each for each in records.values()):
        message = f"neither {pair.baseline} nor {pair.contender} states its durability"
        yield Finding(NAME, Severity.SUSPECT, message, hint, pair.trials)
    else:
        yield NotLooked(NAME, "neither side states its durability")


def named(name: str) -> str:
    """A fact's name in words."""
    return NAMES.get(name) or wording.fact(name)


def listed(name: str, values: Sequence[Scalar]) -> str:
    """A side's first few values, in words; sizes are scaled, also where the engine recorded them as text."""
    return " and ".join(written(name, value) for value in values[:VALUES])


def written(name: str, value: Scalar) -> str:
    """One value."""
    if name == "window" and isinstance(value, int | float):
        return units.duration(value)
    if name.endswith(("_bytes", "_bps")) or name == "bytes":
        return wording.fact_value(name, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MANY:
        return f"{value:,.10g}"
    return wording.fact_value("", value)
