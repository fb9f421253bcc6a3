"""Validates `fleet`: enough clients for the engines, and work that other hosts can do."""

from __future__ import annotations

from loadstone.engine.describe import describe_engine
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model.experiment import FleetKeys
from loadstone.experiment.validation.context import Context

# Keys of `fleet` that are meaningless on this machine.
OF_HOSTS = ("address", "per_host", "placement", "hosts")
# A store that needs no server and no files.
WITHOUT_DATA = "null"


def check_fleet(context: Context) -> None:
    """Checks the keys, the clients of each engine, and for a cluster the work."""
    if not context.is_valid("fleet"):
        return
    fleet = context.experiment.fleet
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
            ("fleet", "per_host"), "fleet.engines and fleet.per_host exclude each other", "keep one of them"
        )
    if fleet.engines > 1:
        check_engines(context)
    check_placement(context)
    check_work(context)
    if fleet.engines > 1 or fleet.per_host is not None:
        check_limits(context)


def check_engines(context: Context) -> None:
    """Checks that each engine has a client, and none needs files that another engine has open."""
    experiment = context.experiment
    engines = experiment.fleet.engines
    works = [(point, context.work_at(point)) for point in context.points]
    clients = [
        point.get("clients", experiment.clients) for point, work in works if work is None or KINDS[work[2]].clients
    ]
    fewest = min(count for count in [*clients, experiment.load.clients or engines] if isinstance(count, int))
    if fewest < engines:
        message = f"fleet.engines is {engines}, but some trials have fewer clients: {fewest}"
        context.add_mistake(("fleet", "engines"), message, "use fewer engines or more clients: each engine needs one")
    for name, system in experiment.systems.items():
        if context.is_valid("systems", name) and describe_engine().within_engine(system.store):
            message = f"{system.store} keeps its data in files of the engine, which several engines cannot share"
            context.add_mistake(("systems", name), message, "leave `fleet.engines` out, or use a networked store")


def check_placement(context: Context) -> None:
    """Checks that a placement on the servers' hosts has their label."""
    fleet = context.experiment.fleet
    is_varied = "placement" in context.dimensions
    placements = context.dimensions.get("placement", (fleet.placement,))
    if "beside" in placements and fleet.hosts.servers.label is None:
        message = "placement `beside` needs the label of the servers' hosts"
        hint = "name it: `hosts: {servers: {label: role=servers}}`"
        context.add_mistake(("vary", "matrix", "placement") if is_varied else ("fleet", "placement"), message, hint)


def check_work(context: Context) -> None:
    """Checks that hosts other than this machine reach servers by the network, and need none of its files."""
    experiment = context.experiment
    for name, system in experiment.systems.items():
        if not context.is_valid("systems", name):
            continue
        if system.start is not None:
            message = f"the servers of {name} would listen on this machine only, out of reach of other hosts"
            context.add_mistake(
                ("systems", name, "start"), message, "start them on their hosts, and name them by `attach`"
            )
        elif system.store != WITHOUT_DATA and not describe_engine().is_networked(system.store):
            message = f"{system.store} has no server that several hosts could reach"
            context.add_mistake(("systems", name), message, "use a networked store, or leave `fleet.on` out")
    for path, workload in experiment.each_workload.items():
        for kind in workload.kinds[:1]:
            if not KINDS[kind].remote:
                message = f"{kind} runs on this machine only"
                context.add_mistake(path, message, "leave `fleet.on` out, or use `ycsb` or `cassandra-stress`")
    if experiment.measure.ledger:
        hint = "leave `ledger` out, or run the engines on this machine"
        context.add_mistake(("measure", "ledger"), "ledgers of several hosts cannot be read back", hint)


def check_limits(context: Context) -> None:
    """Without a rate, a fixed number of operations is a race: the slowest host alone determines the end."""
    for point in context.points:
        values = context.values_at(point)
        if values.get("operations") is not None and values.get("rate") is None:
            message = (
                "a closed loop limited by `operations` ends on each host at another time: the slowest decides the tail"
            )
            key = ("measure", "operations") if "operations" not in point else ("vary", "matrix", "operations")
            context.add_mistake(key, message, "use `duration`, or set a `rate`")
            return
