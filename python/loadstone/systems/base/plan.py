"""Makes a plan from a user's request, and converts settings to numbers and choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from loadstone.engine.describe import SECRET_NAME
from loadstone.format import units
from loadstone.format.parsing import TRUTHS
from loadstone.format.suggestion import did_you_mean
from loadstone.systems.base.system import System, SystemPlan, SystemsError


def plan_of(
    system: System,
    nodes: int | None,
    settings: Mapping[str, str],
    file_system_bytes: int = 0,
    network: str = "",
) -> SystemPlan:
    """A plan with defaults filled in. Raises SystemsError for unknown, invalid or contradictory settings."""
    # `hbase.*` represents all names with that prefix; these settings are copied into a system's configuration file.
    open_names = [setting.name for setting in system.settings if setting.name.endswith("*")]
    known = {setting.name: setting.default for setting in system.settings if setting.name not in open_names}
    for name in settings:
        if name not in known and not any(fnmatchcase(name, pattern) for pattern in open_names):
            listed = ", ".join(sorted([*known, *open_names]))
            raise SystemsError(f'{system.name} has no setting "{name}"', f"{did_you_mean(name, known)}it has {listed}")
    nodes = system.nodes[0] if nodes is None else nodes
    if nodes not in system.nodes:
        number = units.count_noun(nodes, "node")
        raise SystemsError(f"{system.name} cannot have {number}", f"it can have {list_nodes(system.nodes)}")
    plan = SystemPlan(nodes, {**known, **settings}, file_system_bytes, network)
    for setting in system.settings:
        if setting.check is not None:
            setting.check(plan, setting.name)
    system.check_plan(plan)
    return plan


def table_plan(system: str, options: Mapping[str, str], defaults: Mapping[str, str]) -> SystemPlan:
    """The options of a table with defaults filled in. Raises SystemsError for unknown options."""
    if unknown := sorted({*options} - {*defaults}):
        raise SystemsError(f'{system} has no option "{unknown[0]}" for a table', f"it has {', '.join(defaults)}")
    return SystemPlan(1, {**defaults, **options})


def read_whole_number(plan: SystemPlan, name: str, least: int = 0) -> int:
    """A setting that must be an integer. Raises SystemsError if it is not."""
    text = plan.settings[name]
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise SystemsError(
            f'{name} must be a whole number of at least {least}, got "{text}"', f"set {name} to a number"
        )
    return int(text)


def read_positive(plan: SystemPlan, name: str) -> int:
    """A setting that must be an integer of at least 1, such as a port. Raises SystemsError if it is not."""
    return read_whole_number(plan, name, 1)


def read_truth(plan: SystemPlan, name: str) -> bool:
    """A setting that must be yes or no. Raises SystemsError if it is neither."""
    text = plan.settings[name]
    if text not in TRUTHS:
        raise SystemsError(f'{name} must be yes or no, got "{text}"', f"set {name} to yes or no")
    return TRUTHS[text]


def read_choice(plan: SystemPlan, name: str, choices: Iterable[str]) -> str:
    """A setting that must be one of `choices`. Raises SystemsError if it is not."""
    text, allowed = plan.settings[name], [*choices]
    if text not in allowed:
        raise SystemsError(f'{name} cannot be "{text}"', f"{did_you_mean(text, allowed)}it can be {', '.join(allowed)}")
    return text


def plan_differences(old: SystemPlan, new: SystemPlan) -> str:
    """The differences between two plans, for a message: `port=7000, not 6379`."""
    differences = [f"{units.count_noun(old.nodes, 'node')}, not {new.nodes}"] if old.nodes != new.nodes else []
    if old.file_system_bytes != new.file_system_bytes:
        differences.append(f"file systems of {old.file_system_bytes} bytes, not {new.file_system_bytes}")
    if old.network != new.network:
        differences.append(
            "isolated nodes, not nodes on the host" if old.network else "nodes on the host, not isolated"
        )
    if (old.addresses, old.here) != (new.addresses, new.here):
        differences.append("nodes on other hosts")
    for name in sorted({*old.settings, *new.settings}):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after:
            # Messages may be displayed and logged, so they must not contain secrets.
            differences.append(name if SECRET_NAME.search(name) else f"{name}={before}, not {after}")
    return "; ".join(differences)


def list_nodes(nodes: Sequence[int]) -> str:
    """The possible node counts, for a message: `1 or 3`, or `1 to 9`."""
    first, *rest = sorted(nodes)
    if len(rest) > 1 and rest[-1] - first == len(rest):
        return f"{first} to {rest[-1]}"
    *most, last = map(str, sorted(nodes))
    return f"{', '.join(most)} or {last}" if most else last
