"""Validates `compare` (the dimension, the baseline, and the guarantees that may differ) and `checks`."""

from __future__ import annotations

from loadstone.experiment.kind import default_metrics
from loadstone.experiment.model import template
from loadstone.experiment.model.values import quote_value
from loadstone.experiment.validation.context import Context
from loadstone.format.parsing import TRUTHS
from loadstone.format.suggestion import suggest_names
from loadstone.judge.settings import DEFAULTS, RENAMED

# The guarantee that each property, setting or table option sets.
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
    "synchronous_standby_names": "replication",
    "min-replicas-to-write": "replication",
    "cassandra.readconsistencylevel": "consistency",
    "cassandra.writeconsistencylevel": "consistency",
}


def check_compare(context: Context) -> None:
    """Checks that the compared dimension exists, and that the baseline is one of its values; fills in defaults."""
    compare, dimensions = context.experiment.compare, context.dimensions
    by, baseline = compare.by, compare.baseline
    varied = [key for key, values in dimensions.items() if len(values) > 1]
    if not context.is_valid("vary") or not context.is_valid("systems"):
        return
    kinds = context.experiment.kinds
    mixed = context.experiment.workloads and len(kinds) > 1
    if by is None:
        # Different workload kinds have no figures in common.
        comparable = [key for key in varied if not (mixed and key in ("workload", "system"))]
        by = "system" if "system" in comparable else next(iter(comparable), None)
    elif by == "workload" and mixed:
        hint = "compare by another dimension, so that figures of the same workload are compared"
        context.add_mistake(
            ("compare", "by"), f"workloads of different kinds cannot be compared: {', '.join(sorted(kinds))}", hint
        )
        return
    elif by not in dimensions:
        hint = suggest_names(by, list(dimensions), "the dimensions are")
        context.add_mistake(("compare", "by"), f'there is no dimension "{by}"', hint)
        return
    elif by not in varied:
        context.add_warning(("compare", "by"), f"{by} has one value, so there is nothing to compare", "vary it")
    compare = compare.model_copy(update={"metrics": compare.metrics or tuple(default_metrics(context.experiment))})
    context.fill_in(compare=compare)
    if by is None:
        if baseline is not None:
            hint = "vary a dimension, or remove `baseline`"
            context.add_mistake(("compare", "baseline"), "nothing is compared with the baseline", hint)
        return
    values = dimensions[by]
    if baseline is None:
        baseline = values[0]
    elif baseline not in values:
        same = [value for value in values if str(value) == str(baseline)]
        if not same:
            hint = suggest_names(str(baseline), [str(value) for value in values], f"the values of {by} are")
            context.add_mistake(("compare", "baseline"), f"{by} never has the value {quote_value(baseline)}", hint)
            return
        baseline = same[0]
    context.fill_in(compare=compare.model_copy(update={"by": by, "baseline": baseline}))
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


# The names under which the judge records the text of a command.
COMMAND_TEXTS = ("work.run", "work.prepare")


def guarantees_by_dimension(context: Context) -> dict[str, tuple[str, ...]]:
    """The guarantees and groups of facts that each dimension sets; dimensions that set none are omitted."""
    guarantees: dict[str, dict[str, None]] = {}
    for entry in context.list_templates():
        sets = GROUPS.get(str(entry.path[0]), ())
        if (key := str(entry.path[-1])) in GUARANTEES:
            sets = (*sets, GUARANTEES[key])
        for name in template.template_names(entry.text) if sets else ():
            # If a command contains the system's name, only its text may differ between systems; the work must be equal.
            of_command = COMMAND_TEXTS if name == "system" and "command" in entry.path else sets
            guarantees.setdefault(name, {}).update(dict.fromkeys(of_command))
    for dimension, settings in context.experiment.vary.named.items():
        for name in next(iter(settings.values()), {}):
            guarantees.setdefault(dimension, {}).update(guarantees.get(name, {}))
    return {name: tuple(guarantees[name]) for name in context.dimensions if guarantees.get(name)}


def warn_of_guarantees(context: Context) -> None:
    """Warns of systems whose settings may give different guarantees, because the judge would refuse to rank them.

    Only running servers report their actual guarantees, so this is only a warning. Different spellings of a value count
    as equal.
    """
    values: dict[str, dict[str, str | bool]] = {}
    for entry in context.list_templates():
        if entry.system is not None and (key := str(entry.path[-1])) in GUARANTEES:
            values.setdefault(key, {})[entry.system] = TRUTHS.get(entry.text, entry.text)
    settings: dict[str, list[str]] = {}
    for key, by_system in values.items():
        if len(set(by_system.values())) > 1:
            settings.setdefault(GUARANTEES[key], []).append(key)
    for guarantee, keys in settings.items():
        if guarantee not in context.experiment.question_for_judge().promises:
            message = f"the systems differ in {' and '.join(keys)}, so their {guarantee} may differ"
            hint = "set the same value for all systems, or compare the cost of the guarantee: "
            hint += f"`compare: {{guarantees: [{guarantee}]}}`"
            context.add_warning(("compare",), f"{message}: if they do, the judge will refuse to rank them", hint)


def check_thresholds(context: Context) -> None:
    """Checks that the judge has the checks and thresholds that the file names."""
    for check_name, thresholds in context.experiment.checks.items():
        check = RENAMED.get(check_name, check_name)
        if check not in DEFAULTS:
            hint = suggest_names(check, list(DEFAULTS), "the checks are")
            context.add_mistake(("checks", check_name), f'there is no check "{check}"', hint)
            continue
        for key in thresholds:
            if key not in DEFAULTS[check]:
                known = list(DEFAULTS[check])
                hint = suggest_names(key, known, "the thresholds are") if known else "remove it: the check has none"
                context.add_mistake(("checks", check_name, key), f'{check} has no threshold "{key}"', hint)
