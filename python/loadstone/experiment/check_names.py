"""Names that must be known: stores, properties, what templates name, what is compared, thresholds."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from loadstone.engine.describe import description
from loadstone.experiment import template
from loadstone.experiment.context import AT_RUN_TIME, GIVEN, Context, Template
from loadstone.experiment.known import KEYS, MOVING_RATES, OF_A_COMMAND
from loadstone.experiment.shape import Path as Keys
from loadstone.experiment.shape import name
from loadstone.experiment.values import shown
from loadstone.format.suggestion import did_you_mean, near, suggestion
from loadstone.judge.settings import DEFAULTS, RENAMED
from loadstone.results.value import PERCENTILES, statistic
from loadstone.systems.base.plan import TRUTHS

SYSTEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
METRIC = re.compile(r"[a-z][a-z0-9_]*([-.][a-z0-9_]+)*")
OPERATIONS = ("all", "read", "update", "insert", "scan", "delete", "read-modify-write")
# Figures without an operation.
SINGLE = ("throughput", "write_amplification", "operations", "errors", "runtime")
STATISTICS = ("mean", "min", "max", "count")

# The guarantee that a property, a setting or a table's option of this name sets.
GUARANTEES = {
    "durability": "durability",
    "durable_writes": "durability",
    "appendonly": "durability",
    "appendfsync": "durability",
    "fsync": "durability",
    "synchronous_commit": "durability",
    "commitlog_sync": "durability",
    "replication": "replication",
    "replication_factor": "replication",
    "dfs.replication": "replication",
    "cassandra.readconsistencylevel": "consistency",
    "cassandra.writeconsistencylevel": "consistency",
}


def check_systems(context: Context) -> None:
    """Every system's store and its properties; a store that is not given is the system's name."""
    systems = dict(context.experiment.systems)
    for system, each in systems.items():
        path = ("systems", system)
        store = each.store or system
        systems[system] = each.model_copy(update={"store": store})
        if not SYSTEM.fullmatch(system):
            hint = "use letters, digits and . _ + -"
            context.wrong(path, f'"{system}" is not a valid name for a system', hint)
        if not context.knows(*path, "store") or not context.knows("systems"):
            continue
        if store not in description().stores:
            hint = suggestion(store, tuple(description().stores), "the stores are")
            if not each.store:
                hint += f"; a system by another name says which: `{system}: {{store: …}}`"
            context.wrong((*path, "store"), f'there is no store "{store}"', hint)
            continue
        for key in each.properties:
            check_store_property(context, (*path, "properties", key), store, key)
    if context.knows("systems"):
        context.complete(systems=systems)
        check_load_properties(context)


def check_load_properties(context: Context) -> None:
    """Properties that hold while data are loaded: those of any of the stores. What is loaded, the run must know too."""
    stores = [each.store for each in context.experiment.systems.values() if each.store in description().stores]
    for key in context.experiment.load.properties:
        path = ("load", "properties", key)
        if any(has_property(store, key) for store in stores):
            continue
        if key == "threadcount":
            context.wrong(path, "threadcount is not a property of a store", "write `load: {clients: 32}`")
        elif key in description().properties and key not in KEYS and key not in OF_A_COMMAND:
            context.wrong(path, f"{key} is a property of the workload", "write it in `workload: {properties: …}`")
        elif stores:
            check_store_property(context, path, stores[0], key)


def has_property(store: str, key: str) -> bool:
    """Whether it is one that an experiment may set."""
    return key not in description().directories and any(fnmatchcase(key, each) for each in description().own(store))


def check_store_property(context: Context, path: Keys, store: str, key: str) -> None:
    """A property of a store."""
    own = [each for each in description().own(store) if each not in description().directories]
    if key in description().directories:
        context.wrong(path, f"{key} is the lab's to set", "each trial gets a directory of its own, below `directory`")
    elif has_property(store, key):
        return
    elif key in KEYS:
        context.wrong(path, f"{key} is not a property of a store", f"write `{KEYS[key]}`")
    elif key in description().properties and key not in OF_A_COMMAND:
        return
    elif key.partition(".")[0] in description().stores:
        context.wrong(path, f"{store} has no property {key}", suggestion(key, own, f"those of {store} are"))
    else:
        hint = suggestion(key, own, f"those of {store} are") if own else f"{store} has none"
        context.warn(path, f"unknown property {key}", hint)


def check_workload_properties(context: Context) -> None:
    """Properties of the workload: YCSB's, or a binding's."""
    for key in context.experiment.workload.properties:
        path = ("workload", "properties", key)
        store = key.partition(".")[0]
        if key in KEYS:
            context.wrong(path, f"{key} is not set as a property here", f"write `{KEYS[key]}`")
        elif key in OF_A_COMMAND:
            context.wrong(path, f"{key} has no effect in an experiment", "leave it out: the lab keeps everything")
        elif store in description().stores and "." in key:
            hint = f"write it in `systems: {{{store}: {{properties: …}}}}`"
            context.wrong(path, f"{key} is a property of a store", hint)
        elif key in MOVING_RATES and (context.experiment.rate is not None or "rate" in context.dimensions):
            context.wrong(path, f"{key} and `rate` cannot be combined", "keep one of them")
        elif key not in description().properties:
            hint = f"{did_you_mean(key, description().properties)}A binding may know it"
            context.warn(path, f"YCSB has no property {key}", hint)


def check_templates(context: Context) -> set[str]:
    """Every name in a template stands for something. Returns the names that are used."""
    used: set[str] = set()
    for each in context.templates():
        for variable in () if each.command else template.variables(each.text):
            if variable not in os.environ:
                hint = f"set it before the run: export {variable}=…"
                context.wrong(each.path, f"{name(each.path)} names ${{{variable}}}, which is not set", hint)
        try:
            named = template.names(each.text)
        except ValueError as error:
            message, hint = error.args
            context.wrong(each.path, f"{name(each.path)} has {message}", hint)
            context.shaped.lost.add(each.path)
            continue
        used |= set(named)
        for word in named:
            check_named(context, each, word)
    return used


def check_named(context: Context, each: Template, word: str) -> None:
    """One name in a template."""
    given = {"rate": context.experiment.rate, "operations": context.experiment.measure.operations}
    own = [key for key in GIVEN if key not in context.dimensions and given.get(key, key) is not None]
    known = [*context.dimensions, *own, *(AT_RUN_TIME if each.command else ()), *each.later]
    if word in known:
        return
    context.shaped.lost.add(each.path)
    hint = suggestion(word, known, "names are") + "; {{ and }} are braces" if context.knows("vary") else ""
    if word in AT_RUN_TIME:
        hint = f"only commands of `hooks` know {{{word}}}"
    elif word in ("rate", "operations"):
        hint = f"give {'a `rate`' if word == 'rate' else '`measure.operations`'}, or vary it"
    elif not re.fullmatch(r"[\w.-]+", word):
        hint = f"write {{{{{word}}}}} for braces that are the command's own"
    if hint:
        context.wrong(each.path, f"{{{word}}} in {name(each.path)} stands for nothing", hint)


def check_compare(context: Context) -> None:
    """What is compared is a dimension and one of its values; defaults are filled in."""
    compare, dimensions = context.experiment.compare, context.dimensions
    by, baseline = compare.by, compare.baseline
    varied = [key for key, values in dimensions.items() if len(values) > 1]
    if not context.knows("vary") or not context.knows("systems"):
        return
    if by is None:
        by = "system" if "system" in varied else next(iter(varied), None)
    elif by not in dimensions:
        context.wrong(("compare", "by"), f'there is no dimension "{by}"', suggestion(by, list(dimensions), "they are"))
        return
    elif by not in varied:
        context.warn(("compare", "by"), f"{by} has one value, so there is nothing to compare", "vary it")
    if by is None:
        if baseline is not None:
            context.wrong(("compare", "baseline"), "a baseline is given, but nothing is compared", "vary something")
        return
    values = dimensions[by]
    if baseline is None:
        baseline = values[0]
    elif baseline not in values:
        same = [value for value in values if str(value) == str(baseline)]
        if not same:
            hint = suggestion(str(baseline), [str(value) for value in values], f"the values of {by} are")
            context.wrong(("compare", "baseline"), f"{by} is never {shown(baseline)}", hint)
            return
        baseline = same[0]
    update = {"by": by, "baseline": baseline, "promises": differing(context, by)}
    compare = compare.model_copy(update=update)
    context.complete(compare=compare)
    if by == "system":
        warn_of_guarantees(context)


def differing(context: Context, by: str) -> tuple[str, ...]:
    """The guarantees that the compared values are to differ in: those named, and those that the dimension sets."""
    fed = [
        GUARANTEES[key]
        for each in context.templates()
        if (key := str(each.path[-1])) in GUARANTEES and by in template.names(each.text)
    ]
    return tuple(dict.fromkeys((*context.experiment.compare.promises, *fed)))


def warn_of_guarantees(context: Context) -> None:
    """Systems whose settings may guarantee different things: hours later the judge would refuse to rank them.

    What they do guarantee, the servers say when they run; one word written otherwise is no difference.
    """
    said: dict[str, dict[str, str | bool]] = {}
    for each in context.templates():
        if each.system is not None and (key := str(each.path[-1])) in GUARANTEES:
            said.setdefault(key, {})[each.system] = TRUTHS.get(each.text, each.text)
    settings: dict[str, list[str]] = {}
    for key, texts in said.items():
        if len(set(texts.values())) > 1:
            settings.setdefault(GUARANTEES[key], []).append(key)
    for guarantee, keys in settings.items():
        if guarantee not in context.experiment.compare.promises:
            message = f"the systems differ in {' and '.join(keys)}, so they may guarantee different {guarantee}"
            hint = f"give all the same, or ask what it costs: `compare: {{promises: [{guarantee}]}}`"
            context.warn(("compare",), f"{message}: if the servers say so, the judge will refuse to rank them", hint)


def check_metrics(context: Context) -> None:
    """The figures' names have the right shape, and their percentile is kept."""
    for i, metric in enumerate(context.experiment.compare.metrics):
        if context.knows("compare", "metrics", i):
            check_metric(context, ("compare", "metrics", i), metric)


def check_metric(context: Context, path: tuple[str | int, ...], metric: str) -> None:
    """A figure's name has the right shape, and its percentile is kept."""
    last = statistic(metric)
    bare = metric.removeprefix("load.")
    operation = bare.removesuffix(f".{last}").partition(".")[0]
    if not METRIC.fullmatch(metric):
        context.wrong(path, f'"{metric}" is not the name of a figure', "write throughput, read.p99 or load.insert.mean")
    elif re.fullmatch(r"p[0-9.]+", last):
        if last not in PERCENTILES:
            hint = suggestion(last, list(PERCENTILES), "those kept are")
            context.wrong(path, f"the percentile {last} is not kept", hint)
        elif bare == last:
            context.wrong(path, f'"{metric}" does not name an operation', f"write read.{last} or all.{last}")
        else:
            check_operation(context, path, metric, operation)
    elif last in STATISTICS and bare != last:
        check_operation(context, path, metric, operation)
    elif "." not in bare and bare not in SINGLE and (guess := near(bare, SINGLE)):
        context.wrong(path, f'there is no figure "{bare}"', f'did you mean "{guess}"?')


def check_operation(context: Context, path: tuple[str | int, ...], metric: str, operation: str) -> None:
    """An operation that is a slip away from one of YCSB's; a binding may have others."""
    if operation not in OPERATIONS and (guess := near(operation.replace("_", "-"), OPERATIONS)):
        context.wrong(
            path, f'there is no operation "{operation}"', f'did you mean "{metric.replace(operation, guess)}"?'
        )


def check_thresholds(context: Context) -> None:
    """Checks and their thresholds are the judge's."""
    for given, thresholds in context.experiment.checks.items():
        check = RENAMED.get(given, given)
        if check not in DEFAULTS:
            hint = suggestion(check, list(DEFAULTS), "the checks are")
            context.wrong(("checks", given), f'there is no check "{check}"', hint)
            continue
        for key in thresholds:
            if key not in DEFAULTS[check]:
                known = list(DEFAULTS[check])
                hint = suggestion(key, known, "it has") if known else "it has no thresholds"
                context.wrong(("checks", given, key), f'{check} has no threshold "{key}"', hint)
