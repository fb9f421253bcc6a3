"""Validates `faults`: their kinds, their servers, and whether they fit into the window."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from loadstone.experiment.kind import KINDS as WORKLOAD_KINDS
from loadstone.experiment.model import template
from loadstone.experiment.model.faults import (
    ALL,
    ANY,
    CLIENTS,
    KINDS,
    LIFT_SECONDS,
    NEVER,
    FaultKeys,
    seconds_of,
)
from loadstone.experiment.model.system import ATTACH_FAULTS, Start, SystemKeys
from loadstone.experiment.reading.path import Path
from loadstone.experiment.validation.context import Context, Template, list_template_values
from loadstone.format.parsing import format_seconds
from loadstone.format.suggestion import suggest_names
from loadstone.format.units import count_noun
from loadstone.judge.settings import DEFAULTS
from loadstone.results.fault import ENDING_SERVERS
from loadstone.statistics.availability import OPERATIONS_MIN, WINDOW_NS_MIN
from loadstone.systems import registry
from loadstone.systems.base.system import System, SystemPlan, SystemsError

INTERVAL_SECONDS = 0.1
# The check that examines the level before the fault.
UNSTEADY = "before-unsteady"
# The kernel's minimum quota is 1 ms (sched/core.c, min_cfs_quota_period), in a period of 100 ms.
CPU_MIN = 0.01
# The reason for windows that are longer than requested.
LEAST = f"a window has at least {OPERATIONS_MIN} operations, and lasts at least {WINDOW_NS_MIN / 1e9:g} s"
# Faults of a file system. They require a separate file system for each server.
OF_FILE_SYSTEM = frozenset({"power", "full"})


def check_faults(context: Context) -> None:
    """Checks every fault, and fills in the interval. Runs after the servers and the window are known."""
    experiment = context.experiment
    if not experiment.faults or not context.is_valid("faults"):
        return
    if experiment.measure.interval is None:
        context.fill_in(measure=experiment.measure.model_copy(update={"interval": INTERVAL_SECONDS}))
    check_trials(context)
    spans = []
    for number, fault in enumerate(experiment.faults):
        path: Path = ("faults", number)
        kinds = check_kind(context, (*path, "do"), fault)
        check_lift(context, path, fault, kinds)
        if "slow" in kinds and fault.cpu is not None and fault.cpu < CPU_MIN:
            message = f"`cpu` must be at least {CPU_MIN:.0%}, got {fault.cpu:.3g}"
            context.add_mistake((*path, "cpu"), message, "write 5% or 0.05: Linux accepts no smaller quota than 1%")
        for key, kind in (("peer", "cut"), ("direction", "cut"), ("disk", "slow")):
            if kinds and kind not in kinds and getattr(fault, key) not in (None, "both"):
                context.add_warning((*path, key), f"`{key}` only has an effect on the fault {kind}", "leave it out")
        if kinds - {"none"}:
            check_servers(context, path, fault)
            spans.append((path, *check_window(context, path, fault, kinds)))
    for (_, _, before_end), (path, start, _) in pairwise(spans):
        if start < before_end:
            message = f"this fault may begin at {format_seconds(start)}, before the previous fault has ended"
            context.add_mistake(
                (*path, "at"), message, f"begin at {format_seconds(before_end)} or later, or use two experiments"
            )


def check_trials(context: Context) -> None:
    """Checks that each trial has new data, a window of fixed length and, instead of a pilot block, a fixed warm-up."""
    experiment = context.experiment
    measure = experiment.measure
    if experiment.find is not None:
        context.add_mistake(
            ("find",), "`find` and `faults` cannot be combined", "find the knee in a separate experiment"
        )
    if experiment.load.reuse:
        hint = "leave `load.reuse` out: the fault of one trial would change the data of the next"
        context.add_mistake(("load", "reuse"), "`load.reuse` and `faults` cannot be combined", hint)
    if experiment.pilot or measure.warmup is None:
        hint = "write the time that caches and the JIT need, for example `warmup: 30s`"
        context.add_mistake(("measure", "warmup"), "an experiment with `faults` needs `measure.warmup`", hint)
        context.fill_in(pilot=False)
    if measure.operations is not None or "operations" in context.dimensions:
        hint = "set `measure.duration`: without a duration, the instant of the fault is unknown"
        context.add_mistake(("measure", "operations"), "`faults` and a number of operations cannot be combined", hint)
    for path, workload in experiment.all_workloads.items():
        if len(workload.kinds) == 1 and not is_driven_by_clients(workload.kinds[0]):
            message = f"{workload.kinds[0]} cannot have faults: it has no measured window"
            context.add_mistake(path, message, "use a YCSB workload or `cassandra-stress`")
    if measure.ledger:
        for name, system in experiment.systems.items():
            if system.fresh == "none" and context.is_valid("systems", name):
                hint = "write `fresh: table` or `fresh: system`: values from earlier trials would hide losses"
                context.add_mistake(("systems", name, "fresh"), "`fresh: none` and a ledger cannot be combined", hint)
    if experiment.rate is None and "rate" not in context.dimensions:
        message = "in a closed loop, a stall counts once per client, so there is no outage in seconds"
        context.add_warning(("faults",), message, "set a `rate` of about half the knee")


def is_driven_by_clients(kind: str) -> bool:
    """Whether the work of a workload kind consists of operations by clients in a window."""
    return WORKLOAD_KINDS[kind].steady and WORKLOAD_KINDS[kind].clients


def check_kind(context: Context, path: Path, fault: FaultKeys) -> set[str]:
    """The known kinds of a fault over all variants; empty if its template cannot be rendered."""
    template_of = Template(path, fault.do)
    if not context.can_render(template_of):
        return set()
    kinds = list_template_values(context, template_of)
    for kind in sorted(kinds - {*KINDS}):
        names = template.template_names(fault.do)
        where: Path = ("vary", "matrix", names[0]) if names and context.is_set("vary", "matrix", names[0]) else path
        context.add_mistake(where, f'there is no fault "{kind}"', suggest_names(kind, KINDS, "the faults are"))
    return kinds & {*KINDS}


def check_lift(context: Context, path: Path, fault: FaultKeys, kinds: set[str]) -> None:
    """Checks that `lift` has an effect, and that its bounds are in order."""
    if fault.lift is not None:
        shortest, longest = getattr(fault.lift, "from"), fault.lift.to
        if kinds and kinds <= {"restart", "none"}:
            message = "`lift` has no effect on a restart, which ends when the server is ready"
            context.add_warning((*path, "lift"), message, "leave it out")
        if longest is not None and (shortest == NEVER or longest < shortest):
            context.add_mistake((*path, "lift", "to"), "lift.to is below lift.from", "write the shorter length first")


def check_servers(context: Context, path: Path, fault: FaultKeys) -> None:
    """Checks that every system with a fault has servers that meet the prerequisites of the fault."""
    if not fault.server:
        context.add_mistake((*path, "server"), "`server` is empty", f"write `server: {ANY}`, or leave it out")
    for server in fault.server:
        if server in (ANY, ALL) and len(fault.server) > 1:
            context.add_mistake(
                (*path, "server"), f"`{server}` cannot be combined with names", f"write `server: {server}`"
            )
    for name, kind in sorted(faults_of_systems(context, path, fault)):
        system = context.experiment.systems[name]
        at: Path = ("systems", name)
        if not context.is_valid(*at):
            continue
        if system.start is None and system.attach is None:
            hint = (
                f"use a store with servers: write `{name}: {{start: redis}}`, or `attach:`; "
                "an embedded store runs inside the load generator and has no server that can fail alone"
            )
            context.add_mistake(at, f"the fault {kind} needs servers, but {name} has none", hint)
        elif system.attach is not None:
            check_attached(context, at, system, kind)
            if kind == "cut" and (fault.peer or fault.direction != "both"):
                hint = "leave out `peer` and `direction`: the command `attach.cut` defines the connections"
                context.add_mistake(path, "a partial cut cannot be used with `attach`", hint)
            check_victims(context, path, fault, name, system.attach.hosts)
        elif system.start is not None:
            check_started(context, path, fault, name, system.start)
            if (kind in OF_FILE_SYSTEM or (kind == "slow" and fault.disk)) and system.start.file_system is None:
                hint = "add `start: {file_system: 1GB}`, for all variants: each node then has a file system"
                context.add_mistake((*at, "start"), f"the fault {kind} needs a file system for each server", hint)
            if kind == "cut" and system.start.isolate is None:
                hint = "add `start: {isolate: network}`: a network namespace for each node"
                context.add_mistake((*at, "start"), "the fault cut needs isolated servers", hint)


def check_started(context: Context, path: Path, fault: FaultKeys, name: str, start: Start) -> None:
    """Checks the servers of a fault in every variant, unless the system's roles depend on its current state."""
    system = registry.load_system(start.system) if start.system in registry.SYSTEMS else None
    if system is None or start.nodes is None or type(system).find_roles is not System.find_roles:
        return
    defaults = {setting.name: setting.default for setting in system.settings}
    checked = set()
    for point in context.points:
        values = context.values_at(point)
        if point.get("system") != name:
            continue
        # The twin needs the servers, too, because they are drawn for the whole block.
        try:
            nodes = template.render_template(start.nodes, values)
            settings = {key: template.render_template(text, values) for key, text in start.settings.items()}
            plan = SystemPlan(int(nodes), defaults | settings)
            servers, fixed = tuple(system.node_directories(plan)), system.plan_roles(plan)
            victims = tuple(template.render_template(server, values) for server in fault.server)
        except (SystemsError, ValueError, KeyError):
            # Another check reports this error.
            continue
        if (servers, victims) not in checked:
            checked.add((servers, victims))
            # A role is the name of a server without its number.
            roles = {re.sub(r"-\d+$", "", server) for server in servers} | {*fixed}
            varied = f" with {count_noun(plan.nodes, 'node')}" if template.template_names(start.nodes) else ""
            rendered = fault.model_copy(update={"server": victims})
            check_victims(context, path, rendered, f"{start.system}{varied}", servers, roles)


def check_victims(
    context: Context, path: Path, fault: FaultKeys, system: str, names: Sequence[str], roles: Collection[str] = ()
) -> None:
    """Checks that the named servers exist, and that there are enough servers to draw `count` of them."""
    for server in fault.server if names else ():
        if server not in (ANY, ALL, *names, *roles) and not template.template_names(server):
            hint = suggest_names(server, list(names), "the servers are")
            context.add_mistake((*path, "server"), f'{system} has no server "{server}"', hint)
    if fault.peer and names and not template.template_names(fault.peer):
        if fault.peer not in (ANY, CLIENTS, *names) or fault.peer in {*fault.server} - {ANY}:
            message = f'{system} has no other server "{fault.peer}"'
            context.add_mistake((*path, "peer"), message, suggest_names(fault.peer, [*names, CLIENTS], "the peers are"))
        elif fault.peer != CLIENTS and (len(names) == 1 or ALL in fault.server):
            hint = f"use more nodes, or write `peer: {CLIENTS}`"
            context.add_mistake((*path, "peer"), f"`peer: {fault.peer}`, but no other server remains", hint)
    if names and isinstance(fault.count, int) and fault.count > len(names):
        servers = count_noun(len(names), "server")
        context.add_mistake(
            (*path, "count"), f"`count: {fault.count}`, but {system} has only {servers}", f"use at most {len(names)}"
        )


def check_attached(context: Context, at: Path, system: SystemKeys, kind: str) -> None:
    """Checks that the commands that inject a fault into attached servers are configured."""
    assert system.attach is not None
    for key in ATTACH_FAULTS.get(kind, ()):
        if not getattr(system.attach, key):
            message = f"the fault {kind} needs a command `attach.{key}`"
            context.add_mistake((*at, "attach"), message, f"add `{key}: ssh {{host}} …`, which exits with 0 on success")
    if kind not in ATTACH_FAULTS:
        known = [*ATTACH_FAULTS]
        context.add_mistake(
            (*at, "attach"), f"the fault {kind} cannot be used with `attach`", f"use {', '.join(known)}"
        )


def faults_of_systems(context: Context, path: Path, fault: FaultKeys) -> set[tuple[str, str]]:
    """The systems that have a fault in some variant, each with the kind of the fault."""
    if not context.can_render(Template((*path, "do"), fault.do)):
        return set()
    pairs = set()
    for point in context.points:
        kind = template.render_template(fault.do, context.values_at(point))
        if kind in KINDS and kind != "none":
            pairs.add((str(point["system"]), kind))
    return pairs


def check_window(context: Context, path: Path, fault: FaultKeys, kinds: set[str]) -> tuple[float, float]:
    """Checks that the fault, the restart of its servers and the hold time of the recovery fit into the window.

    Also checks that the time before the fault suffices to estimate the noise. Returns the earliest start and the latest
    end of the fault, including the restart, in seconds.
    """
    duration_s = context.experiment.measure.duration or 0.0
    first = getattr(fault.at, "from")
    from_s = seconds_of(first, duration_s)
    to_s = seconds_of(fault.at.to or first, duration_s)
    if to_s < from_s:
        context.add_mistake((*path, "at", "to"), "at.to is before at.from", "write the earlier instant first")
    lift_s = 0.0
    if kinds - {"restart", "none"}:
        lift_s = longest_lift(fault)
    started = systems_started(context, kinds)
    starting_s = max((registry.estimate_start(name).usual_s for name in started), default=0.0)
    recovered = fault.recovered
    needed_s = round(to_s + lift_s + starting_s + recovered.hold, 6)
    if needed_s > duration_s:
        parts = f"at {format_seconds(to_s)} + lift {format_seconds(lift_s)} + start {format_seconds(starting_s)}"
        message = (
            f"the fault does not fit: {parts} + hold {format_seconds(recovered.hold)} is {format_seconds(needed_s)}"
        )
        hint = f"set `measure.duration` to {format_seconds(needed_s)} or more, or an earlier `at.to`"
        context.add_mistake((*path, "at"), f"{message}, but the window is {format_seconds(duration_s)}", hint)
    # The number of windows that are needed before the fault to estimate the noise.
    windows = {**DEFAULTS[UNSTEADY], **context.experiment.checks.get(UNSTEADY, {})}["windows"]
    for window_s, least in ((recovered.window, ""), (shortest_window(context, recovered.window), LEAST)):
        windows_s = round(windows * window_s, 6)
        if from_s >= windows_s:
            continue
        message = f"only {round(from_s, 1):g}s before the fault: {windows:g} windows"
        message += f" of {format_seconds(round(window_s, 3))} take {format_seconds(windows_s)}"
        hint = f"set `at.from` to {format_seconds(windows_s)} or later"
        if least:
            # Losses and the length of an outage can still be measured.
            message += ", so no recovery can be determined"
            context.add_warning((*path, "at"), message, f"{hint}: {least}")
        else:
            context.add_mistake((*path, "at"), message, f"{hint}, or a shorter `recovered.window`")
        break
    return from_s, to_s + lift_s + starting_s


def shortest_window(context: Context, window_s: float) -> float:
    """The length of the windows at the lowest rate, in s: `window_s`, or longer to contain enough operations."""
    rates = context.dimensions.get("rate", (context.experiment.constant_rate,))
    known = [float(rate) for rate in rates if isinstance(rate, int | float) and rate > 0]
    return max(window_s, WINDOW_NS_MIN / 1e9, OPERATIONS_MIN / min(known) if known else 0.0)


def longest_lift(fault: FaultKeys) -> float:
    """The longest time after which a fault is lifted, in s; 0 if it is lifted at the end of the window."""
    if fault.lift is None:
        return LIFT_SECONDS
    shortest = getattr(fault.lift, "from")
    return 0.0 if shortest == NEVER else float(fault.lift.to or shortest)


def systems_started(context: Context, kinds: set[str]) -> Iterator[str]:
    """Yields the systems that are started again after a fault."""
    for system in context.experiment.systems.values():
        if kinds & ENDING_SERVERS and (system.start or system.attach):
            yield system.start.system if system.start else system.store
