"""Validates `fleet`: there must be enough clients for the engines, and other hosts must be able to do the work."""

from __future__ import annotations

from loadstone.engine.describe import describe_engine
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model.experiment import FleetKeys
from loadstone.experiment.model.system import ATTACH_FAULTS, Start
from loadstone.experiment.validation.context import Context, Template, list_template_values
from loadstone.systems import registry
from loadstone.systems.registry import SYSTEMS

# Keys of `fleet` that are meaningless on this machine.
OF_HOSTS = ("address", "per_host", "placement", "hosts")
# Keys of `start` that have no meaning for servers on hosts, with a hint for each.
NOT_ON_HOSTS = {
    "over": "start both systems on their hosts, and name the hosts in `attach`",
    "isolate": "leave it out: servers on different hosts are already on separate networks",
    "keep": "leave it out: servers on hosts stop at the end of the run",
    "before": "prepare the hosts before the run",
    "after": "clean up the hosts after the run",
}
# Faults that the agents do not inject.
NOT_SPREAD = ("power", "full", "slow", "cut")
# The properties that name the jars of a store in a JVM.
JARS = {"hbase": ("hbase.lib",), "jvm": ("jvm.classpath",)}
# A store that needs no server and no files.
WITHOUT_DATA = "null"


def check_fleet(context: Context) -> None:
    """Checks the keys, the clients of each engine and, for a cluster, the work."""
    if not context.is_valid("fleet"):
        return
    fleet = context.experiment.fleet
    if fleet.engines > 1 or fleet.per_host is not None:
        check_programs(context)
    if fleet.on == "local":
        for key in OF_HOSTS:
            # A resolved document contains every default.
            if getattr(fleet, key) != FleetKeys.model_fields[key].default:
                hint = "add `on: ray` to `fleet`, or remove the key"
                context.add_mistake(("fleet", key), f"fleet.{key} has no meaning on this machine", hint)
        if fleet.engines > 1:
            check_engines(context)
        return
    if fleet.engines > 1 and fleet.per_host is not None:
        context.add_mistake(
            ("fleet", "per_host"), "fleet.engines and fleet.per_host cannot be combined", "keep one of them"
        )
    if fleet.engines > 1:
        check_engines(context)
    check_placement(context)
    check_work(context)
    if fleet.engines > 1 or fleet.per_host is not None:
        check_limits(context)


def check_engines(context: Context) -> None:
    """Checks that each engine has a client, and that no engine needs files that another engine has open."""
    experiment = context.experiment
    engines = experiment.fleet.engines
    works = [(point, context.work_at(point)) for point in context.points]
    clients = [
        point.get("clients", experiment.clients) for point, work in works if work is None or KINDS[work[2]].clients
    ]
    fewest = min(count for count in [*clients, experiment.load.clients or engines] if isinstance(count, int))
    if fewest < engines:
        message = f"fleet.engines is {engines}, but some trials have fewer clients: {fewest}"
        hint = "use fewer load generators or more clients: each load generator needs a client"
        context.add_mistake(("fleet", "engines"), message, hint)
    for name, system in experiment.systems.items():
        if context.is_valid("systems", name) and describe_engine().is_embedded(system.store):
            message = f"{system.store} keeps its data in files, which several load generators cannot share"
            context.add_mistake(("systems", name), message, "leave `fleet.engines` out, or use a networked store")


def check_programs(context: Context) -> None:
    """Refuses several load generators on one host for work that another tool's program does."""
    fleet = context.experiment.fleet
    for path, workload in context.experiment.all_workloads.items():
        for kind in [kind for kind in workload.kinds[:1] if KINDS[kind].is_program]:
            if fleet.on == "local" and fleet.engines > 1:
                message = f"{kind} runs once on this machine, so fleet.engines has no effect"
                context.add_mistake(("fleet", "engines"), message, "leave it out, or run on several hosts: `on: ray`")
            elif (fleet.per_host or 1) > 1:
                message = f"{kind} runs once on each host, but fleet.per_host is {fleet.per_host}"
                context.add_mistake(("fleet", "per_host"), message, f"write `per_host: 1` ({path[-1]})")


def check_placement(context: Context) -> None:
    """Checks that the label of the servers' hosts is known if engines are placed on them."""
    fleet = context.experiment.fleet
    is_varied = "placement" in context.dimensions
    placements = context.dimensions.get("placement", (fleet.placement,))
    if "beside" in placements and fleet.hosts.servers.label is None:
        message = "placement `beside` needs the label of the servers' hosts"
        hint = "name it: `hosts: {servers: {label: role=servers}}`"
        context.add_mistake(("vary", "matrix", "placement") if is_varied else ("fleet", "placement"), message, hint)


def check_work(context: Context) -> None:
    """Checks that other hosts can reach the servers over the network, and need no files on this machine."""
    experiment = context.experiment
    for name, system in experiment.systems.items():
        if not context.is_valid("systems", name):
            continue
        if system.start is not None:
            check_start(context, name, system.start)
        elif system.store in describe_engine().stores and not is_reachable(system.store):
            message = f"{system.store} has no server that several hosts could reach"
            context.add_mistake(("systems", name), message, "use a networked store, or leave `fleet.on` out")
        for key in JARS.get(system.store, ()):
            if key not in system.properties:
                message = f"{system.store} needs jars on every host, which the lab does not send"
                hint = f"copy them to the same path on every host, and name it: `properties: {{{key}: …}}`"
                context.add_mistake(("systems", name), message, hint)
    able = ", ".join(sorted(kind for kind in KINDS if KINDS[kind].remote))
    for path, workload in experiment.all_workloads.items():
        for kind in workload.kinds[:1]:
            if not KINDS[kind].remote:
                # A sort's memory and temporary files are planned for one host.
                message = f"{kind} runs only on this machine, whose memory and disks limit it"
                context.add_mistake(path, message, f"leave `fleet.on` out; other hosts can run {able}")
    own = [system.store for system in experiment.systems.values() if system.store not in describe_engine().stores]
    if experiment.load.reuse == "copy" and own:
        hint = "leave `reuse` out, or write `reuse: shared` for data on servers"
        context.add_mistake(("load", "reuse"), "data on several hosts cannot be copied", hint)
    if experiment.measure.ledger:
        hint = "leave `ledger` out, or run the load generators on this machine"
        context.add_mistake(("measure", "ledger"), "ledgers on several hosts cannot be read back", hint)


def is_reachable(store: str) -> bool:
    """Whether other hosts can use a store: over the network, or because it has no data."""
    return store == WITHOUT_DATA or describe_engine().is_networked(store)


def check_start(context: Context, name: str, start: Start) -> None:
    """Checks servers that the lab starts: they run on the hosts for servers, with a node on each host."""
    path = ("systems", name, "start")
    if start.system not in SYSTEMS:
        # Another check reports this error.
        return
    if context.experiment.fleet.hosts.servers.label is None:
        message = f"no hosts are named for the servers of {name}"
        context.add_mistake(path, message, "name their label: `fleet: {hosts: {servers: {label: role=servers}}}`")
    if not registry.load_system(start.system).spreadable:
        able = ", ".join(system for system in SYSTEMS if registry.load_system(system).spreadable)
        message = f"{start.system} cannot run on hosts of a fleet; {able} can"
        context.add_mistake(path, message, "start it on its hosts, and name the hosts in `attach`")
    for key, reason in NOT_ON_HOSTS.items():
        if getattr(start, key) != Start.model_fields[key].default:
            context.add_mistake((*path, key), f"`{key}` and servers on hosts cannot be combined", reason)
    if start.settings.get("tls", "no") not in ("no", "false", "off"):
        message = "the certificates of servers on hosts would be unknown to clients"
        context.add_mistake((*path, "settings", "tls"), message, "leave `tls` out, or name the servers in `attach`")
    for number, fault in enumerate(context.experiment.faults):
        at: tuple[str | int, ...] = ("faults", number, "do")
        template = Template(at, fault.do)
        for kind in sorted(
            (list_template_values(context, template) if context.can_render(template) else set()) & {*NOT_SPREAD}
        ):
            message = f"the fault {kind} cannot be injected on hosts of a fleet"
            context.add_mistake(at, message, f"use {', '.join(kind for kind in ATTACH_FAULTS if kind != 'cut')}")


def check_limits(context: Context) -> None:
    """Refuses a fixed number of operations without a rate, because the slowest host would determine the end."""
    for point in context.points:
        values = context.values_at(point)
        if values.get("operations") is not None and values.get("rate") is None:
            message = (
                "a closed loop limited by `operations` finishes at a different time on each host: "
                "the slowest host determines the end"
            )
            key = ("measure", "operations") if "operations" not in point else ("vary", "matrix", "operations")
            context.add_mistake(key, message, "use `duration`, or set a `rate`")
            return
