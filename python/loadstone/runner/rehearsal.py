"""Checks a plan before anything runs, for `--dry-run` and before the first trial."""

from __future__ import annotations

import math
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter

from loadstone.engine.describe import describe_engine
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import kind_of
from loadstone.experiment.model.faults import ALL
from loadstone.experiment.plan.forecast import estimate_space, load_seconds, plan_seconds
from loadstone.experiment.plan.plan import Plan, Variant
from loadstone.experiment.plan.required_servers import Attached, StartedSystems, StartRequest
from loadstone.experiment.validation.figures import OPERATIONS
from loadstone.faults.support import require_support
from loadstone.format import units
from loadstone.runner.server_pool import expected, with_expected_address
from loadstone.search.objective import parse_expectations
from loadstone.systems.base import jvm
from loadstone.systems.base.ownership import refuse_taken
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.startup import require_port
from loadstone.systems.registry import load_system

# The maximum number of variants that are checked with the engine.
CHECKED_MAX = 200
CONNECT_SECONDS = 2.0
PORT_MAX = 65_535
# With at least this number of clients, response times no longer limit a load phase over a network.
LOAD_CLIENTS = 32
# Faults during which servers do not answer, so that clients wait until they time out.
SILENT = ("pause", "cut")
# Load phases shorter than this number of seconds cause no warning.
SHORT_SECONDS = 60.0


def preflight(plan: Plan) -> None:
    """Checks the variants with the engine, and every system that the lab starts, before the first trial.

    Raises LoadstoneError with all errors.
    """
    raise_all(errors([*start_checks(plan), *front_end_checks(plan), partial(require_support, plan)]))


def rehearse(plan: Plan) -> None:
    """Runs every check that is possible before a run: of values, stores, servers, ports, programs and space.

    Raises LoadstoneError with all errors.
    """
    checks: list[Callable[[], object]] = [*start_checks(plan), *connection_checks(plan), *front_end_checks(plan)]
    checks += [partial(check_space, plan), partial(require_support, plan)]
    raise_all(errors(checks))


def errors(checks: Iterable[Callable[[], object]]) -> dict[str, LoadstoneError]:
    """Runs checks; returns their distinct errors, keyed by text."""
    failures: dict[str, LoadstoneError] = {}
    for check in checks:
        try:
            check()
        except LoadstoneError as error:
            failures.setdefault(str(error), error)
    return failures


def raise_all(failures: dict[str, LoadstoneError]) -> None:
    """Raises one error that prints all errors, each with its hint."""
    if failures:
        # Printing the combined error adds `error: ` at its beginning, and the hint of the last error at its end.
        _, last = failures.popitem()
        raise LoadstoneError("\n".join([*failures, f"error: {last.args[0]}"]).removeprefix("error: "), last.hint)


def front_end_checks(plan: Plan) -> Iterator[Callable[[], object]]:
    """The checks of each variant's workload kind."""
    for variant in extreme_variants(plan.variants)[:CHECKED_MAX]:
        yield from kind_of(variant).preflight(with_expected_address(variant))


def extreme_variants(variants: Iterable[Variant]) -> list[Variant]:
    """The variants with the fewest and the most clients, among variants that differ only in their number of clients.

    Every limit on the number of clients is a minimum or a maximum, so checking these variants is enough. This saves
    time, because each check starts an engine.
    """
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        key = repr(replace(variant, config={}, slug="", clients=0, load_clients=0))
        groups.setdefault(key, []).append(variant)
    ends = [sorted(group, key=attrgetter("clients"))[:: max(len(group) - 1, 1)] for group in groups.values()]
    return list(chain.from_iterable(ends))


def start_checks(plan: Plan) -> list[Callable[[], object]]:
    """Checks of each system that the lab starts, unless a command prepares it or it runs on other hosts."""
    checks: dict[object, Callable[[], object]] = {}
    for variant, start in starts_of(plan):
        if not start.before and not start.on_hosts:
            checks[start.system, start.nodes, *start.settings.items()] = partial(check_start, variant, start)
    return list(checks.values())


def starts_of(plan: Plan) -> Iterator[tuple[Variant, StartRequest]]:
    """The systems that the lab starts for each variant."""
    for variant in plan.variants:
        if variant.servers and isinstance(variant.servers.how, StartedSystems):
            yield from ((variant, start) for start in variant.servers.how.systems)


def connection_checks(plan: Plan) -> list[Callable[[], object]]:
    """Checks of servers that must already be running, except servers that a command starts."""
    checks: dict[object, Callable[[], object]] = {}
    for variant in plan.variants:
        how = variant.servers.how if variant.servers else None
        if isinstance(how, StartedSystems) or variant.hooks_before or (how and how.restart):
            continue
        for host, port in addresses(variant, how):
            checks[host, port] = partial(check_reachable, variant.store, host, port)
    return list(checks.values())


def addresses(variant: Variant, how: Attached | None) -> Iterator[tuple[str, int]]:
    """The addresses of servers that must already be running, as far as the store's properties state them."""
    known = describe_engine().address_properties(variant.store)
    properties = {**(how.store_properties(variant.store) if how else {}), **variant.store_properties}
    if known is None:
        return
    usual = (setting.default for setting in load_system(variant.store).settings if setting.name == "port")
    port = properties.get(known[1]) or next(usual, "")
    for host in properties.get(known[0], "").split(",") if port.isdigit() else ():
        if host.strip():
            yield host.strip(), int(port)


def check_reachable(store: str, host: str, port: int) -> None:
    """Connects to a server. Raises LoadstoneError if it does not accept connections."""
    if not 1 <= port <= PORT_MAX:
        # The operating system's resolver would accept a port above the maximum, but use a different port.
        hint = f"correct the address of {store}: the highest port is {PORT_MAX}"
        raise LoadstoneError(f"there is no port {port}", hint)
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        hint = f"start the server, or correct the address of {store}"
        raise LoadstoneError(f"cannot connect to {host}:{port}: {reason}", hint) from error


def check_start(variant: Variant, start: StartRequest) -> None:
    """Checks that a system can be started: the user is not running it, Java exists if needed, and its port is free."""
    running = RunningSystem(start.system)
    known = running.load_state
    refuse_taken(running)
    if running.system.runs_in_java:
        jvm.find_java()
    if known is not None or start.isolated:
        # This run takes over or stops a system that an earlier run left running. The addresses of isolated nodes do not
        # exist yet.
        return
    address = describe_engine().address_properties(variant.store)
    if address is None or variant.servers is None or start != getattr(variant.servers.how, "system", None):
        return
    properties: Mapping[str, str] = {}
    with suppress(LoadstoneError, OSError):
        # Some addresses are known only once the system is running.
        properties = expected(start)
    for host in properties.get(address[0], "").split(","):
        if host and properties.get(address[1], "").isdigit():
            require_port(start.system, host, int(properties[address[1]]))


def check_space(plan: Plan) -> None:
    """Checks that the data fits on the file system."""
    stores = describe_engine().stores
    local = [
        variant
        for variant in plan.variants
        if not variant.hooks_before and (variant.store not in stores or describe_engine().keeps_files(variant.store))
    ]
    needed = estimate_space(replace(plan, variants=tuple(local)))
    places = [kind_of(variant).place(variant.work, variant.directory) for variant in local]
    for directory in dict.fromkeys(place for place in places if place is not None):
        existing = next(path for path in (directory, *directory.parents) if path.exists())
        usage = shutil.disk_usage(existing)
        if not usage.total or not os.access(existing, os.W_OK):
            message = f"the file system of {existing} cannot store files"
            reason = f"{existing} is not writable" if usage.total else message
            hint = "set `directory` to a writable directory on a disk"
            raise LoadstoneError(f"files cannot be created below {directory}: {reason}", hint)
        if usage.free < needed:
            raise LoadstoneError(
                f"up to {units.format_size(needed)} will be written below {directory}, "
                f"which has {units.format_size(usage.free)} free",
                "set `directory` to a directory on a larger file system, or write less data",
            )


def advice(plan: Plan) -> Iterator[str]:
    """Warnings about a plan, each with its hint."""
    yield from absent_metrics(plan)
    yield from missing_parents(plan)
    yield from missing_programs(plan)
    yield from slow_load(plan)
    yield from busy_clients(plan)
    yield from idle_rates(plan)


def missing_parents(plan: Plan) -> Iterator[str]:
    """Warns of a directory whose parent does not exist: its name may be misspelt, or a volume may not be mounted."""
    for directory in dict.fromkeys(variant.directory for variant in plan.variants if not variant.hooks_before):
        existing = next(path for path in (directory, *directory.parents) if path.exists())
        if existing not in (directory, directory.parent):
            yield (
                f"warning: {directory} will be created, on the file system of {existing}\n"
                "hint: check its name, and that its volume is mounted"
            )


def idle_rates(plan: Plan) -> Iterator[str]:
    """Warns of a rate at which no operation is due in the measured time."""
    seconds = plan.experiment.measure.duration or math.inf
    rates = [variant.rate for variant in plan.variants if variant.rate and variant.rate * seconds < 1]
    if rates:
        yield (
            f"warning: at {min(rates):g} op/s, no operation is due within the {seconds:g} s of the measurement\n"
            "hint: set a higher `rate`, or a longer `measure.duration`"
        )


def busy_clients(plan: Plan) -> Iterator[str]:
    """Warns of faults during which all clients may wait for silent servers, so that healthy servers look slow too."""
    for variant in plan.variants:
        how = variant.servers.how if variant.servers else None
        nodes = len(how.hosts) if isinstance(how, Attached) else how.system.nodes if how else 1
        for fault in variant.faults:
            waiting_s = min([fault.lift_s[1] if fault.lift_s else math.inf, *time_outs(variant)])
            share = 1.0 if fault.servers == (ALL,) else min(max(fault.count, len(fault.servers)) / nodes, 1.0)
            needed = math.ceil((variant.rate or 0.0) * share * min(waiting_s, plan.experiment.measure.duration or 0.0))
            if fault.kind in SILENT and variant.clients < needed:
                yield (
                    f"warning: up to {needed} clients wait for silent servers during the fault {fault.kind}, "
                    f"but there are only {variant.clients}\n"
                    f"hint: use {needed} clients, or set a shorter timeout for the store"
                )
                return


def time_outs(variant: Variant) -> Iterator[float]:
    """The timeouts that the file sets for a store, in seconds."""
    for name, text in variant.store_properties.items():
        if name.lower().endswith("timeoutmillis") and text.isdecimal():
            yield int(text) / 1e3


def missing_programs(plan: Plan) -> Iterator[str]:
    """Warns of missing programs for downloading systems; cached files need no download."""
    for system in dict.fromkeys(start.system for _, start in starts_of(plan) if not start.on_hosts):
        program = "mvn" if load_system(system).runs_in_java else "apt-get"
        if shutil.which(program) is None:
            hint = "install it" if program == "mvn" else f"run {system} yourself, and use `attach`"
            message = f"{program} is not on PATH, but is needed to fetch {system} unless the cache already contains it"
            yield f"warning: {message}\nhint: {hint}"


def absent_metrics(plan: Plan) -> Iterator[str]:
    """Warns of compared and expected metrics whose operation no variant performs."""
    experiment = plan.experiment
    until = experiment.repeats.until if isinstance(experiment.repeats.until, dict) else {}
    known = [kind_of(variant).operations(variant.work) for variant in plan.variants]
    performed = {operation for operations in known for operation in operations or ()}
    if None in known or not performed:
        return
    expected_metrics = [term.metric for text in experiment.expect for _, term in parse_expectations(text)]
    for metric in dict.fromkeys([*experiment.compare.metrics, *until, *expected_metrics]):
        operation = metric.partition(".")[0].replace("_", "-")
        if "." in metric and operation in {*OPERATIONS} - {"all"} and operation not in performed:
            listed = ", ".join(sorted(performed))
            yield (
                f"warning: no variant performs the operation of {metric}\n"
                f"hint: remove the metric, or add the operation to the workload, which performs {listed}"
            )


def slow_load(plan: Plan) -> Iterator[str]:
    """Warns of a load over a network that may take longer than the trials, because it has few clients."""
    total = plan_seconds(plan, plan.experiment.repeats.at_least, 1)
    count = 1 if plan.experiment.load.reuse else plan.experiment.repeats.at_least
    for variant in plan.variants:
        loading = load_seconds(variant.loading, variant.data, 1) * count
        few = variant.load_clients < LOAD_CLIENTS and describe_engine().is_networked(variant.store)
        if few and loading > total / len(plan.variants) / 2 and loading > SHORT_SECONDS:
            records = units.format_count(variant.data.records)
            yield (
                f"warning: loading {records} records with "
                f"{units.count_noun(variant.load_clients, 'client')} may take longer"
                f" than the trials: up to {units.rough_span(loading, loading)}\n"
                f"hint: write `load: {{clients: {LOAD_CLIENTS}}}`"
            )
            return
