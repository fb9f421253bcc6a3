"""Validates `compare`: the dimension, the baseline and the guarantees that may differ; and `checks`."""

from __future__ import annotations

from loadstone.experiment.kind import default_metrics
from loadstone.experiment.model import template
from loadstone.experiment.model.values import shown
from loadstone.experiment.validation.context import Context
from loadstone.format.suggestion import suggestion
from loadstone.judge.settings import DEFAULTS, RENAMED
from loadstone.systems.base.plan import TRUTHS

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


def check(context: Context) -> None:
    """The compared dimension exists and has the baseline as a value; fills in defaults."""
    compare, dimensions = context.experiment.compare, context.dimensions
    by, baseline = compare.by, compare.baseline
    varied = [key for key, values in dimensions.items() if len(values) > 1]
    if not context.knows("vary") or not context.knows("systems"):
        return
    kinds = context.experiment.kinds
    mixed = context.experiment.workloads and len(kinds) > 1
    if by is None:
        # Different workload kinds have no figures in common.
        comparable = [key for key in varied if not (mixed and key in ("workload", "system"))]
        by = "system" if "system" in comparable else next(iter(comparable), None)
    elif by == "workload" and mixed:
        hint = "compare by another dimension, so that figures of the same workload are compared"
        context.wrong(
            ("compare", "by"), f"workloads of different kinds cannot be compared: {', '.join(sorted(kinds))}", hint
        )
        return
    elif by not in dimensions:
        hint = suggestion(by, list(dimensions), "the dimensions are")
        context.wrong(("compare", "by"), f'there is no dimension "{by}"', hint)
        return
    elif by not in varied:
        context.warn(("compare", "by"), f"{by} has one value, so there is nothing to compare", "vary it")
    compare = compare.model_copy(update={"metrics": compare.metrics or tuple(default_metrics(context.experiment))})
    context.complete(compare=compare)
    if by is None:
        if baseline is not None:
            context.wrong(
                ("compare", "baseline"), "nothing is compared with the baseline", "vary a dimension, or remove it"
            )
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
    context.complete(compare=compare.model_copy(update={"by": by, "baseline": baseline}))
    if by == "system":
        warn_of_guarantees(context)


# The groups of facts (loadstone.judge.checks.sides_differ) that a part of the file sets.
GROUPS = {
    "workload": ("work",),
    "workloads": ("work",),
    "systems": ("system", "storage"),
    "directory": ("storage",),
    "hooks": ("storage",),
    "rate": ("rate", "pace.rate"),
}


def guarantees(context: Context) -> dict[str, tuple[str, ...]]:
    """The guarantees and the groups of facts that each dimension sets, of those that set any."""
    found: dict[str, dict[str, None]] = {}
    for each in context.templates():
        sets = GROUPS.get(str(each.path[0]), ())
        if (key := str(each.path[-1])) in GUARANTEES:
            sets = (*sets, GUARANTEES[key])
        for name in template.names(each.text) if sets else ():
            found.setdefault(name, {}).update(dict.fromkeys(sets))
    for dimension, settings in context.experiment.vary.named.items():
        for name in next(iter(settings.values()), {}):
            found.setdefault(dimension, {}).update(found.get(name, {}))
    return {name: tuple(found[name]) for name in context.dimensions if found.get(name)}


def warn_of_guarantees(context: Context) -> None:
    """Warns of systems whose settings may give different guarantees: after the run the judge would refuse to rank them.

    Only running servers report their actual guarantees, so this is a warning; spellings of one value count as equal.
    """
    values: dict[str, dict[str, str | bool]] = {}
    for each in context.templates():
        if each.system is not None and (key := str(each.path[-1])) in GUARANTEES:
            values.setdefault(key, {})[each.system] = TRUTHS.get(each.text, each.text)
    settings: dict[str, list[str]] = {}
    for key, by_system in values.items():
        if len(set(by_system.values())) > 1:
            settings.setdefault(GUARANTEES[key], []).append(key)
    for guarantee, keys in settings.items():
        if guarantee not in context.experiment.question_for_judge().promises:
            message = f"the systems differ in {' and '.join(keys)}, so they may guarantee different {guarantee}"
            hint = f"set the same for all, or compare its cost: `compare: {{guarantees: [{guarantee}]}}`"
            context.warn(("compare",), f"{message}: if they do, the judge will refuse to rank them", hint)


def check_thresholds(context: Context) -> None:
    """The judge has these checks and thresholds."""
    for given, thresholds in context.experiment.checks.items():
        check = RENAMED.get(given, given)
        if check not in DEFAULTS:
            hint = suggestion(check, list(DEFAULTS), "the checks are")
            context.wrong(("checks", given), f'there is no check "{check}"', hint)
            continue
        for key in thresholds:
            if key not in DEFAULTS[check]:
                known = list(DEFAULTS[check])
                hint = suggestion(key, known, "the thresholds are") if known else "remove it: the check has none"
                context.wrong(("checks", given, key), f'{check} has no threshold "{key}"', hint)
