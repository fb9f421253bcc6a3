"""Validates the servers of systems: started or attached, their settings, and whether their data can be reused."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping

from loadstone.engine.describe import describe_engine
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model import template
from loadstone.experiment.model.system import OVER, Attach, Over, Start, SystemKeys
from loadstone.experiment.model.values import Scalar
from loadstone.experiment.validation.context import Context, Template, list_template_values
from loadstone.format.suggestion import suggest_names
from loadstone.systems import registry
from loadstone.systems.base.plan import list_nodes, plan_of
from loadstone.systems.base.system import System as Kind
from loadstone.systems.base.system import SystemPlan, SystemsError
from loadstone.systems.registry import SERVED_BY

Keys = tuple[str | int, ...]


def check_servers(context: Context) -> None:
    """Checks every system's servers, and fills in their defaults."""
    systems = {
        name: complete_system(context, name, entry) if context.is_valid("systems", name) else entry
        for name, entry in context.experiment.systems.items()
    }
    context.fill_in(systems=systems)
    check_reuse(context)


def complete_system(context: Context, name: str, system: SystemKeys) -> SystemKeys:
    """Checks the servers of a system, and returns the system with their defaults filled in."""
    path: Keys = ("systems", name)
    sources = [key for key in ("start", "attach") if getattr(system, key) is not None]
    if len(sources) == 2:
        context.add_mistake((*path, "attach"), f"{name} has both `start` and `attach`", "keep one of them")
        return system
    if sources and describe_engine().keeps_files(system.store):
        hint = "name the store of these servers, as in `store: redis`, or leave the servers out"
        context.add_mistake(
            (*path, sources[0]), f"{system.store} runs inside the load generator and has no servers", hint
        )
        return system
    if system.start is not None:
        return complete_start(context, path, system, system.start)
    if system.attach is not None:
        return complete_attach(context, path, system, system.attach)
    for key in ("fresh", "table"):
        if context.is_set("systems", name, key):
            hint = f"write `start: {SERVED_BY.get(system.store) or 'redis'}`, or `attach: {{hosts: [10.0.0.1]}}`"
            context.add_mistake((*path, key), f"`{key}` needs servers, but {name} has none", hint)
    return system


def complete_start(context: Context, path: Keys, system: SystemKeys, start: Start) -> SystemKeys:
    """Checks a system that the lab starts, and returns it with its defaults."""
    name = start.system or SERVED_BY.get(system.store, "")
    known = list(registry.SYSTEMS)
    if name not in known:
        message = (
            f'there is no system "{name}" to start'
            if name
            else f"`systems.{path[1]}` does not state which system to start"
        )
        context.add_mistake(
            (*path, "start", "system"), message, suggest_names(name, known, "write `start:` with one of")
        )
        return system
    kind = registry.load_system(name)
    where = (*path, "start")
    check_started(context, where, kind, start.nodes, start.settings)
    nodes = str(kind.nodes[0]) if start.nodes is None else start.nodes
    over = start.over
    if over is None and name in OVER and not is_standalone(nodes, start.settings):
        over = Over()
    if over is not None and name not in OVER:
        context.add_mistake((*where, "over"), f"{name} does not run on another system", "leave `over` out")
        over = None
    if over is not None:
        below = registry.load_system(OVER[name])
        check_started(context, (*where, "over"), below, over.nodes, over.settings)
        over = over.model_copy(update={"nodes": str(below.nodes[0]) if over.nodes is None else over.nodes})
    settings = start.settings
    if over is not None and "mode" not in settings and not (nodes.isdigit() and nodes != "1"):
        # By default, a system with a single node would run in standalone mode.
        settings = {**settings, "mode": "distributed"}
    has_tables = recreates_tables(kind)
    if system.fresh == "table" and not has_tables:
        context.add_mistake((*path, "fresh"), f"{name} cannot recreate a table", "write `fresh: system`")
    fresh = system.fresh or ("table" if has_tables else "system")
    if system.table and (fresh != "table" or not has_tables):
        context.add_mistake((*path, "table"), "`table` has no effect without `fresh: table`", "leave it out")
    update = {"system": name, "nodes": nodes, "over": over, "settings": settings}
    return system.model_copy(update={"start": start.model_copy(update=update), "fresh": fresh})


def is_standalone(nodes: str, settings: Mapping[str, str]) -> bool:
    """Whether HBase needs no HDFS: HBase is one process on a local file system, or `hbase.rootdir` is set."""
    return "hbase.rootdir" in settings or (nodes == "1" and settings.get("mode") != "distributed")


def check_started(context: Context, path: Keys, kind: Kind, nodes: str | None, settings: Mapping[str, str]) -> None:
    """Checks the nodes and the settings of a system."""
    check_nodes(context, path, kind, nodes)
    names = [setting.name for setting in kind.settings]
    # Some names are patterns: `dfs.*`.
    matches = {key for key in settings if any(fnmatch.fnmatchcase(key, pattern) for pattern in names)}
    for key in settings:
        if key not in matches:
            hint = suggest_names(key, names, "the settings are") if names else "remove it: the system has none"
            context.add_mistake((*path, "settings", key), f'{kind.name} has no setting "{key}"', hint)
    before = len(context.mistakes)
    for setting in kind.settings:
        if setting.name in settings and setting.check is not None:
            check_setting(context, (*path, "settings", setting.name), settings[setting.name], setting.check)
    if len(context.mistakes) == before:
        check_plans(context, path, kind, nodes, {key: settings[key] for key in settings if key in matches})


def check_setting(context: Context, path: Keys, text: str, check: Callable[[SystemPlan, str], object]) -> None:
    """Checks every value of a setting, over all variants."""
    if not context.can_render(Template(path, text)) or template.environment_names(text):
        return
    for value in sorted(list_template_values(context, Template(path, text))):
        try:
            check(SystemPlan(1, {str(path[-1]): value}), str(path[-1]))
        except SystemsError as error:
            context.add_mistake(path, str(error.args[0]), error.hint)


def check_plans(context: Context, path: Keys, kind: Kind, nodes: str | None, settings: Mapping[str, str]) -> None:
    """Checks the settings together with the nodes in every variant, as a start of the system would check them."""
    where = {"nodes": (*path, "nodes"), **{key: (*path, "settings", key) for key in settings}}
    texts = {"nodes": str(kind.nodes[0]) if nodes is None else nodes, **settings}
    parts = [Template(where[key], text) for key, text in texts.items()]
    if not all(context.can_render(part) for part in parts):
        return
    named = any(template.template_names(part.text) for part in parts)
    points = [point for point in context.points if point.get("system") == path[1]] if named else [{}]
    allowed = {str(count) for count in kind.nodes}
    for point in points:
        values = context.values_at(point) if named else {}
        count, *rendered = (template.render_template(part.text, values) for part in parts)
        if count not in allowed or any(template.environment_names(text) for text in rendered):
            continue
        try:
            plan_of(kind, int(count), dict(zip(settings, rendered, strict=True)))
        except SystemsError as error:
            context.add_mistake((*path, "settings") if settings else path, str(error.args[0]), error.hint)
            return


def recreates_tables(kind: Kind) -> bool:
    """Whether a system supports `fresh: table`."""
    return type(kind).create_table is not Kind.create_table


def check_nodes(context: Context, path: Keys, kind: Kind, nodes: str | None) -> None:
    """Checks that every number of nodes, over all variants, is supported."""
    where = (*path, "nodes")
    if nodes is None or not context.can_render(Template(where, nodes)):
        return
    allowed = [str(count) for count in sorted(kind.nodes)]
    for text in sorted(list_template_values(context, Template(where, nodes))):
        if text not in allowed:
            context.add_mistake(where, f'{kind.name} cannot have "{text}" nodes', f"use {list_nodes(kind.nodes)}")


def complete_attach(context: Context, path: Keys, system: SystemKeys, attach: Attach) -> SystemKeys:
    """Checks a system that the user runs, and returns it with its defaults."""
    if not attach.hosts and context.is_valid(*path, "attach", "hosts"):
        context.add_mistake((*path, "attach"), f"{path[1]} has no hosts", "write `attach: {hosts: [10.0.0.1]}`")
    if system.fresh == "system":
        hint = "write `fresh: table` with a command `attach: {fresh: …}`, or `fresh: none`"
        context.add_mistake((*path, "fresh"), "the lab cannot recreate servers that you run", hint)
    if system.fresh == "table" and not attach.fresh:
        hint = "add a command, for example `attach: {fresh: redis-cli -h {host} flushall}`"
        context.add_mistake((*path, "fresh"), "no `fresh` command is configured", hint)
    if attach.restart and not attach.status:
        hint = "write `status: ssh {host} systemctl is-active …`"
        context.add_mistake((*path, "attach", "restart"), "`restart` has no effect without `status`", hint)
    if (
        attach.port is not None
        and system.store in describe_engine().stores
        and not describe_engine().address_properties(system.store)
    ):
        hint = f"set the address in the properties of {system.store}"
        context.add_warning((*path, "attach", "port"), f"{system.store} does not accept `port`", hint)
    fresh = system.fresh or ("table" if attach.fresh else "none")
    if system.table and fresh != "table":
        context.add_mistake((*path, "table"), "`table` has no effect without `fresh: table`", "leave it out")
    if fresh == "none" and not context.is_set(*map(str, path), "fresh") and not context.experiment.load.reuse:
        hint = "add a command `attach: {fresh: …}`, or write `fresh: none` if that is intended"
        context.add_warning((*path, "attach"), "every load adds to the data of earlier trials", hint)
    return system.model_copy(update={"fresh": fresh})


def check_reuse(context: Context) -> None:
    """Checks the reuse of data: data on servers can only be shared or left unchanged, and files can only be copied."""
    where: Keys = ("load", "reuse")
    reuse = context.experiment.load.reuse
    if not reuse or not context.is_valid(*where):
        return
    stores = {name: entry.store for name, entry in context.experiment.systems.items()}
    if reuse == "shared":
        files = next((name for name, store in stores.items() if describe_engine().keeps_files(store)), None)
        if files is not None:
            reason = "it keeps its data in files, and each trial has separate files"
            message = f"`reuse: shared` is not possible with {files}: {reason}"
            context.add_mistake(where, message, "write `reuse: copy`")
        return
    for point in context.points:
        system = str(point.get("system"))
        if describe_engine().is_networked(stores.get(system, "")) and (key := changing_key(context, point)):
            message = f"the data of {system} is on servers and cannot be copied, but the workload changes it ({key})"
            hint = "leave `reuse` out, or write `reuse: shared` if trials may use data that earlier trials changed"
            context.add_mistake(where, message, hint)
            return


def changing_key(context: Context, point: Mapping[str, Scalar]) -> str | None:
    """The key that causes the workload of a point to change its data, if any."""
    if (work := context.work_at(point)) is None:
        return None
    path, workload, kind = work
    return next(KINDS[kind].changing(context, path, workload.keys_of_kind(kind), dict(point)), None)
