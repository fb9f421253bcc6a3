"""sides-differ: the sides, or the repeats of one side, did different work or ran under different conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median

from loadstone.format import units, wording
from loadstone.format.parsing import normalize_spelling
from loadstone.importers import fio_options
from loadstone.judge.checks import page_cache
from loadstone.judge.facts import (
    ARITHMETIC,
    CONSEQUENCES,
    DURABILITY,
    DURABLE,
    FIXED_WORK,
    GUARANTEES,
    PROPERTY_FILES,
    STORAGE,
    SYSTEM,
    SYSTEM_PREFIXES,
    UNKNOWN,
    WORK,
    YCSB_OPTIONS,
    differing_files,
    missing_facts,
    name_fact,
    operation_mix,
    record_facts,
)
from loadstone.judge.finding import UNKNOWN_OF_BOTH, Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.projection import POOLED
from loadstone.results.result_set import USUAL, natural_key, order_metrics
from loadstone.results.trial_result import LOGGED, Scalar, TrialResult
from loadstone.statistics.estimate import REPEATS_MIN

NAME = "sides-differ"
# Results recorded before the durability `interval` existed state `none` instead; the fact `how` did not change.
RENAMED = {"none", "interval"}
RESUMED = "a run that is resumed after a change measures two different things: start a new run"
DIFFERS = "make both sides equal; if the difference is intended, allow it: --set 'compare.guarantees=[{}]'"
COST = "the sides are compared by this guarantee: the difference is its cost"
MANY = 10**10
# If the first repeat differs from all later repeats by more than this factor, these may have reused its result.
REUSED = 5
REUSED_HINT = "in `hooks.before`, remove what an execution stores, or execute the command before each trial (`warmups`)"
# A sort uses half of the free memory unless the file sets its memory.
JOB_MEMORY = "work.job.memory_bytes"
# If the longest window of a repeat exceeds the shortest by more than this factor, the repeats are not comparable.
LENGTHS_MAX = 1.25
# The maximum numbers of values per side, and of differences, in a message.
VALUES, DIFFERENCES = 4, 6
# A single repeat's mix is known less precisely than a side's, so its tolerance is larger by this factor.
COARSE = 5

# Facts of the work that follow from figures, or that other findings cover.
OBSERVED = frozenset({"work", "window", "operations", "bytes_per_read", "mix", "tool_version", PROPERTY_FILES})

Records = Sequence[Mapping[str, Scalar]]


def check_sides(pair: Pair, settings: Settings) -> Looks:
    """Findings on the facts that are known for both sides and differ, with both values."""
    sides = [[record_facts(trial) for trial in trials] for trials in pair.sides]
    fill_logged(sides)
    further = [*mix_differences(pair, settings), *cache_differences(pair, settings)]
    yield from fact_differences(pair, sides, settings, further)
    yield from find_equal_values(pair)
    yield from find_shared_machines(pair)
    yield from find_reused_results(pair, settings)
    yield from pool_differences(pair, settings)
    yield from unit_differences(pair, settings)
    yield from check_durability(pair, sides)
    unknown = [] if pair.is_one_run else missing_facts([*chain(*sides)], all(map(operation_mix, pair.sides)))
    unknown += [name for name in list_partly_known(pair, sides) if name not in unknown]
    files = [] if pair.is_one_run or is_allowed(pair, PROPERTY_FILES) else differing_files(sides)
    if unknown or files:
        # Unknown facts become a condition of the claim.
        message = f"{UNKNOWN_OF_BOTH}{', '.join([*map(name_fact, unknown), *files])}"
        unknown += [PROPERTY_FILES] if files else []
        facts = " ".join(f"--fact {name}=…" for name in unknown)
        hint = (
            f"state the facts of each side with `loadstone import {facts} LOG` (facts of both sides:"
            " `loadstone compare --fact …`), or in a facts file next to each log"
        )
        yield Finding(NAME, Severity.UNCHECKED, message, hint, pair.trials)


def fact_differences(
    pair: Pair, sides: Sequence[Records], settings: Settings, further: Sequence[str] = ()
) -> Iterator[Finding]:
    """Findings on facts that differ between the sides or between repeats, as after a resume.

    `further`: clauses on other differences. A search compares only the facts, because in an overloaded trial the
    operations depend on the load.
    """
    unlike: dict[Severity, list[str]] = {Severity.SUSPECT: [], Severity.INVALID: [], Severity.NOTE: []}
    names: list[str] = []
    for name in dict.fromkeys(chain.from_iterable(chain(*sides))):
        baseline, contender = (distinct_values(name, side, settings) for side in sides)
        if name in ("operations", PROPERTY_FILES) or len(baseline) + len(contender) < 2:
            continue
        is_constant = len(baseline) == len(contender) == 1
        if is_constant and not values_differ(name, baseline, contender, settings):
            continue
        if is_pooled(pair, name) or (name == "window" and not differ_in_length(pair, sides, settings)):
            continue
        if not is_constant:
            yield find_change(pair, name, sides, settings)
            continue
        text = f"{name_fact(name)} ({render_values(name, baseline)} against {render_values(name, contender)})"
        if not is_allowed(pair, name):
            mechanisms = {facts["how"] for facts in chain(*sides) if "how" in facts}
            is_older = name == DURABILITY and {*baseline, *contender} == RENAMED and len(mechanisms) == 1
            is_bad = name in GUARANTEES or name in ARITHMETIC or DURABLE.match(name) is not None
            unlike[Severity.NOTE if is_older else Severity.INVALID if is_bad else Severity.SUSPECT].append(text)
            names.append(name)
        elif name in GUARANTEES or (name in pair.groups and not pair.is_one_run):
            unlike[Severity.NOTE].append(text)
    unlike[Severity.SUSPECT] += further
    for severity, texts in unlike.items():
        if texts:
            message = f"{pair.baseline} and {pair.contender} differ in {units.list_items(texts, DIFFERENCES)}"
            hint = COST if severity == Severity.NOTE else DIFFERS.format(", ".join(names) or "FACT")
            yield Finding(NAME, severity, message, hint, pair.trials)


def fill_logged(sides: Sequence[Sequence[dict[str, Scalar]]]) -> None:
    """Adds a logged value to every trial if a fact contradicts the log of any trial; for trials without a
    contradiction, this value is the fact itself."""
    names = {name for facts in chain(*sides) for name in facts if name.startswith(LOGGED)}
    for facts in chain(*sides):
        facts |= {name: facts[base] for name in names - facts.keys() if (base := name.removeprefix(LOGGED)) in facts}


def list_partly_known(pair: Pair, sides: Sequence[Records]) -> Iterator[str]:
    """The options that only some logs of one tool state: in the other logs, they have unknown defaults."""
    records = [*chain(*sides)]
    if pair.is_one_run or any("tool" not in trial.facts for trial in chain(*pair.sides)):
        return
    for name in dict.fromkeys(chain.from_iterable(records)):
        is_option = name.startswith("work.") or name in YCSB_OPTIONS or name in WORK - OBSERVED or DURABLE.match(name)
        is_partly_known = any(name not in facts for facts in records)
        if is_option and is_partly_known and not is_allowed(pair, name):
            yield name


def find_reused_results(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Findings on a first repeat that differs greatly from all later repeats of its side, which may reuse its result.

    If the first repeats of both sides differ, the cause is a warm-up. Trials of Loadstone's engine reuse nothing.
    """
    if any("engine" in trial.facts for trial in chain(*pair.sides)):
        return
    for metric in order_metrics([*chain(*pair.sides)], settings.metrics):
        figures = [[trial.value(metric) or 0.0 for trial in trials] for trials in pair.sides]
        apart = [is_first_apart(side) for side in figures]
        if sum(apart) != 1:
            continue
        at, unit = apart.index(True), pair.sides[0][0].values[metric].unit
        first, *later = figures[at]
        texts = [units.format_figure(figure, unit) for figure in (first, min(later), max(later))]
        message = (
            f"{metric} of {(pair.baseline, pair.contender)[at]} is {texts[0]} in the first repeat and {texts[1]} to"
            f" {texts[2]} in all later repeats, which may reuse the first result"
        )
        yield Finding(NAME, Severity.SUSPECT, message, REUSED_HINT, pair.trials, metric)


def is_first_apart(figures: Sequence[float]) -> bool:
    """Whether there are enough figures, and the first differs from all later figures by more than the factor REUSED."""
    return (
        len(figures) >= REPEATS_MIN
        and min(figures) > 0
        and not min(figures[1:]) / REUSED <= figures[0] <= max(figures[1:]) * REUSED
    )


def find_equal_values(pair: Pair) -> Iterator[Finding]:
    """A finding on compared values that are one setting in two spellings; system and run names are not settings."""
    values = pair.baseline, pair.contender
    if len(set(map(normalize_spelling, values))) == 1 and pair.by not in USUAL:
        message = f"{pair.by} is the same on both sides ({' and '.join(map(repr, values))})"
        yield Finding(NAME, Severity.SUSPECT, message, "compare two different values", pair.trials)


def find_shared_machines(pair: Pair) -> Iterator[Finding]:
    """A finding on a comparison of placements in which clients and servers share a machine even if placed apart."""
    if "placement" not in pair.by.split(","):
        return
    shared = tuple(trial.trial for trial in chain(*pair.sides) if trial.facts.get("machines_shared") == "yes")
    if shared:
        message = "the hosts of clients and of servers are one machine (one kernel)"
        reason = "clients and servers compete for the same processors in every placement"
        yield Finding(NAME, Severity.SUSPECT, f"{message}: {reason}", "use hosts that are separate machines", shared)


def is_allowed(pair: Pair, name: str) -> bool:
    """Whether a fact is compared, or is a documented consequence of a compared fact."""
    name = name.removeprefix(LOGGED)
    dimensions = pair.by.split(",")
    written = {text for dimension in dimensions for text in (dimension, *CONSEQUENCES.get(dimension, ()))}
    compared = (*GUARANTEES, *pair.groups)
    written |= {text for fact in compared if pair.is_compared(fact) for text in CONSEQUENCES.get(fact, ())}
    return pair.is_compared(name) or not (written | pair.groups).isdisjoint({name, *fact_groups(name, pair)})


def fact_groups(name: str, pair: Pair) -> Iterator[str]:
    """The groups of facts that a fact belongs to."""
    if name in GUARANTEES or (not pair.is_one_run and DURABLE.match(name)):
        return
    # A queue depth that fio capped is not an intended consequence of the I/O engine.
    is_depth = name.rpartition(".")[2] == fio_options.DEPTH
    if is_depth and any(note.name == fio_options.CAPPED for trial in chain(*pair.sides) for note in trial.notes):
        return
    of_system = any(name in trial.of_system for trial in chain(*pair.sides))
    if name in SYSTEM or name.startswith(SYSTEM_PREFIXES) or of_system:
        yield "system"
    # The facts of a fio job have the name of the job as prefix.
    is_of_job = name.rpartition(".")[2] in WORK or ".work." in name
    if name.startswith("work.") or (is_of_job and not (of_system or name.startswith(SYSTEM_PREFIXES))):
        yield "work"
    if name in STORAGE or name.endswith("file_system"):
        yield "storage"
    if name.startswith("hooks."):
        yield "hooks"


def find_change(pair: Pair, name: str, records: Sequence[Records], settings: Settings) -> Finding:
    """A finding on a fact that changed between the repeats of a side, as after a resume."""
    sides = [distinct_values(name, side, settings) for side in records]
    by_block = [
        {trial.repeat: facts.get(name) for trial, facts in zip(trials, side, strict=True)}
        for trials, side in zip(pair.sides, records, strict=True)
    ]
    both = {block: [side[block] for side in by_block] for block in sorted(by_block[0].keys() & by_block[1].keys())}
    apart = [
        str(block)
        for block, (first, second) in both.items()
        if first is not None and second is not None and values_differ(name, [first], [second], settings)
    ]
    # A system's own settings may differ between the sides, but not between the repeats of one side.
    may_differ = is_allowed(pair, name)
    own = may_differ or "system" in fact_groups(name, pair) or name in GUARANTEES
    if pair.blocks and all(sides) and not apart and not own:
        values = render_values(name, list(dict.fromkeys(chain(*sides))))
        message = f"the {name_fact(name)} changed between blocks ({values}); within each block it is the same"
        return Finding(NAME, Severity.NOTE, message, RESUMED, pair.trials)
    within = pair.blocks and bool(apart) and not own
    where = f"within blocks {units.list_items(apart)}" if within else "between repeats"
    values = "; ".join(render_values(name, side) for side in sides if len(side) > 1 or within)
    is_bad = name in (*ARITHMETIC, *GUARANTEES) and not may_differ and values_differ(name, sides[0], sides[1], settings)
    severity = Severity.INVALID if is_bad else Severity.SUSPECT
    return Finding(NAME, severity, f"the {name_fact(name)} changed {where}: {values}", RESUMED, pair.trials)


def is_pooled(pair: Pair, name: str) -> bool:
    """Whether a side pools trials with different values of this fact; unequal shares have a separate finding."""
    return name.startswith(POOLED) or any(f"{POOLED}{name}" in trial.facts for trial in chain(*pair.sides))


def variant_changes(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Findings on facts that change between the repeats of an unpaired variant, which has no blocks to compensate for
    the change."""
    records = [record_facts(trial) for trial in trials]
    for name in dict.fromkeys(chain.from_iterable(records)):
        values = distinct_values(name, records, settings)
        if len(values) > 1 and name not in ("operations", "window", "rate"):
            message = f"the {name_fact(name)} changed between repeats: {render_values(name, values)}"
            yield Finding(NAME, Severity.SUSPECT, message, RESUMED, tuple(trial.trial for trial in trials))


def distinct_values(name: str, side: Records, settings: Settings) -> list[Scalar]:
    """The distinct values of a fact on one side, in the order of first appearance."""
    values: list[Scalar] = []
    if name == "window" and (length := common_length(side)) is not None:
        return [length]
    for facts in side:
        if name in facts and (not values or values_differ(name, values, [facts[name]], settings)):
            values.append(facts[name])
    return list(dict.fromkeys(values))


def common_length(side: Records) -> float | None:
    """The median window of repeats from another tool, if they differ only slightly: pgbench's `-T 4` lasts 3.6 to 4 s.

    None for Loadstone's engine: it keeps a requested window exactly, so any difference is a change.
    """
    lengths = [facts["window"] for facts in side if "window" in facts and "engine" not in facts]
    numbers = [float(length) for length in lengths if isinstance(length, int | float)]
    if len(numbers) < len(side) or max(numbers, default=0.0) > LENGTHS_MAX * min(numbers, default=0.0):
        return None
    return median(numbers)


def values_differ(name: str, first: Sequence[Scalar], second: Sequence[Scalar], settings: Settings) -> bool:
    """Whether values differ by more than their tolerance; text from a server is compared as a number if possible."""
    if set(map(normalize_spelling, first)) == set(map(normalize_spelling, second)):
        return False
    try:
        numbers = [float(value) for value in (*first, *second)]
    except (ValueError, OverflowError):
        return True
    # Two measurements are never exactly equal.
    is_measured = name.endswith("_bps") or name in ("rate", "window", "bytes_per_read", JOB_MEMORY)
    share = settings.check_threshold(NAME, "measured") if is_measured else 0.0
    share = settings.check_threshold(NAME, "memory") if name == "memory_bytes" else share
    return max(numbers) - min(numbers) > share * max(map(abs, numbers))


def differ_in_length(pair: Pair, sides: Sequence[Records], settings: Settings) -> bool:
    """Whether windows differ for a reason other than the speed at which the sides did equal work."""
    if any(facts.get("work") in FIXED_WORK for facts in chain(*sides)):
        return False
    counts = [[float(facts["operations"]) for facts in side if "operations" in facts] for side in sides]
    if not all(counts):
        return True
    if is_allowed(pair, "operations") and all(len(set(side)) == 1 for side in counts):
        # The window of each side ends with its last operation, and the amount of work is compared.
        return False
    low, high = sorted(map(median, counts))
    return high - low > settings.check_threshold(NAME, "mix") * high


def mix_differences(pair: Pair, settings: Settings) -> Iterator[str]:
    """Clauses on different shares of operations, between the sides or between repeats, unless facts state the mix."""
    most, (first, second) = settings.check_threshold(NAME, "mix"), map(operation_mix, pair.sides)
    misses = [[share for trial in trials if (share := trial.value("misses")) is not None] for trials in pair.sides]
    if all(misses) and abs(median(misses[0]) - median(misses[1])) > most:
        ends = " against ".join(units.format_percent(median(side)) for side in misses)
        yield f"the share of reads that found no value ({ends})"
    if not first or not second or all(pair.fact_values("mix")) or is_allowed(pair, "mix"):
        return
    repeats = [shares for trial in chain(*pair.sides) if (shares := operation_mix([trial]))]
    for operation in sorted({*first, *second}):
        before, after = first.get(operation, 0.0), second.get(operation, 0.0)
        own = [of_repeat.get(operation, 0.0) for of_repeat in repeats]
        if abs(before - after) > most:
            yield f"the share of {operation} ({units.format_percent(before)} against {units.format_percent(after)})"
        elif max(own) - min(own) > COARSE * most:
            yield (
                f"the share of {operation} between repeats ({units.format_percent(min(own))} "
                f"to {units.format_percent(max(own))})"
            )


def cache_differences(pair: Pair, settings: Settings) -> Iterator[str]:
    """A clause if reads came from the device on one side, and from the page cache on the other."""
    sides = [
        [share for trial in trials if (share := page_cache.share_from_device(trial)) is not None]
        for trials in pair.sides
    ]
    if not all(sides) or is_allowed(pair, "device"):
        return
    low, high = sorted(sides, key=median)
    cached, served = (settings.check_threshold(page_cache.NAME, name) for name in ("share", "claimed_share"))
    if max(low) < cached and min(high) > served:
        # The device may read several times as many bytes as are returned, so the ratio is not a share.
        first, second = (units.format_ratio(median(side)) for side in sides)
        yield f"the source of reads (bytes from the device per returned byte: {first} against {second})"


def pool_differences(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Findings on dimensions that the sides pool in different shares, which may cause the difference.

    A dimension with a single value on each side is part of the comparison.
    """
    facts = dict.fromkeys(name for trial in chain(*pair.sides) for name in trial.facts)
    for fact in (name for name in facts if name.startswith(POOLED)):
        sides = [
            {value: count / len(trials) for value, count in Counter(trial.facts.get(fact) for trial in trials).items()}
            for trials in pair.sides
        ]
        most = max(abs(sides[0].get(value, 0) - sides[1].get(value, 0)) for value in {*sides[0], *sides[1]})
        if most <= settings.check_threshold(NAME, "mix") or max(map(len, sides)) == 1:
            continue
        name = fact.removeprefix(POOLED)
        shares = " against ".join(
            units.list_items(
                [f"{units.format_percent(side[value])} of {value}" for value in sorted(side, key=natural_key)], VALUES
            )
            for side in sides
        )
        message = f"{pair.baseline} and {pair.contender} pool {name} in different shares: {shares}"
        yield Finding(NAME, Severity.SUSPECT, message, f"add {name} to --row, so that it is not pooled", pair.trials)


def unit_differences(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """Findings on metrics with the same name but two units."""
    sides: list[dict[str, set[str]]] = [{}, {}]
    for units_by_metric, trials in zip(sides, pair.sides, strict=True):
        for metric, value in chain.from_iterable(trial.values.items() for trial in trials):
            units_by_metric.setdefault(metric, set()).add(value.unit)
    for metric in sorted(sides[0].keys() & sides[1].keys()):
        if len(names := sorted(sides[0][metric] | sides[1][metric])) > 1:
            message = f"{metric} is in {' and in '.join(name or 'no unit' for name in names)}"
            hint = "two different metrics have the same name: rename one of them"
            # A metric that was not requested does not affect the claim.
            severity = Severity.INVALID if metric in (settings.metrics or [metric]) else Severity.NOTE
            yield Finding(NAME, severity, message, hint, pair.trials, metric)


def check_durability(pair: Pair, records: Sequence[Records]) -> Looks:
    """Findings on a side that does not state its durability, which every store of Loadstone states."""
    states = [[state for facts in side if (state := facts.get(DURABILITY))] for side in records]
    if all(states):
        return
    if any(states):
        silent, trials = (pair.contender, pair.contenders) if states[0] else (pair.baseline, pair.baselines)
        message = f"{silent} does not state its durability; the other side states durability {next(chain(*states))}"
        reasons = [trial.facts[name] for trial in trials if (name := f"{DURABILITY}_{UNKNOWN}") in trial.facts]
        message += f": {reasons[0]}" if reasons else ""
    elif any("engine" in facts for facts in chain(*records)):
        message = f"neither {pair.baseline} nor {pair.contender} states its durability"
    else:
        yield NotLooked(NAME, "neither side states its durability")
        return
    yield Finding(
        NAME, Severity.SUSPECT, message, f"state it: `loadstone import --fact {DURABILITY}=… LOG`", pair.trials
    )


def render_values(name: str, values: Sequence[Scalar]) -> str:
    """The first few values of a side as text."""
    return " and ".join(render_value(name, value) for value in values[:VALUES])


def render_value(name: str, value: Scalar) -> str:
    """One value as text; sizes are scaled, even if the engine recorded them as text."""
    if name == "window" and isinstance(value, int | float):
        return units.format_duration(value)
    if name.endswith(("_bytes", "_bps")) or name == "bytes":
        return wording.fact_value(name, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MANY:
        return f"{value:,.10g}"
    return wording.fact_value("", value)
