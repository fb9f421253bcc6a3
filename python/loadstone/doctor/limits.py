"""Checks of the limits on files, threads and mappings, and on ports and queues between clients and servers on one
machine.

The limits on files and mappings are the same as in the load generator (crates/measure/src/limits.rs).
"""

from __future__ import annotations

from loadstone.doctor.check import Check, CheckResult, Machine, unknown_result
from loadstone.format import units
from loadstone.observe.listeners import Listener
from loadstone.systems import registry

# The number of files that the load generator has open in addition to its connections.
OTHER_FILES = 256
MAPPINGS_PER_THREAD = 8
# The number of threads on a host and in an engine in addition to the clients' threads.
OTHER_THREADS = 1000
# Proposed limits on open files are multiples of this number, unless the hard limit is lower.
FILES_STEP = 65_536
PID_MAX = 4_194_304
# The suffixes of systemd's control groups; other groups belong to containers.
UNITS = (".slice", ".scope", ".service")
LIMITS_FILE = "/etc/security/limits.d/90-loadstone.conf"
# The default ports of the systems, with the systems' names.
KNOWN_PORTS = {
    int(setting.default): name
    for name in registry.SYSTEMS
    for setting in registry.load_system(name).settings
    if setting.name.lower().endswith("port")
}
# A port range above all known ports.
WIDE_RANGE = (20_000, 65_535)
# Ports below 1,024 are reserved, so one server address accepts at most this many connections.
FIRST_PORT = 1024
CONNECTIONS_MAX = WIDE_RANGE[1] - FIRST_PORT + 1
QUEUE = 4096


def open_files(machine: Machine, clients: int) -> CheckResult:
    """Each client of a networked store has a connection, and a connection is an open file."""
    limit, needed = machine.open_files, clients + OTHER_FILES
    text = f"{limit_text(limit.soft)} (hard limit {limit_text(limit.hard)}); {format_need(clients)} {needed:,}"
    wish = -(-needed // FILES_STEP) * FILES_STEP
    if limit.hard is not None and limit.hard < needed:
        return CheckResult("fail", text, raise_hard_limit("nofile", wish))
    if limit.soft is not None and limit.soft < needed:
        fits = wish if limit.hard is None else min(wish, limit.hard)
        return CheckResult("warn", text, f"ulimit -n {fits}")
    return CheckResult("ok", text)


def format_need(clients: int, kind: str = "") -> str:
    """The beginning of a sentence about clients: `1 client needs`, `10,000 clients in threads need`."""
    return f"{units.count_noun(clients, 'client')}{kind} {'needs' if clients == 1 else 'need'}"


def check_processes(machine: Machine, clients: int) -> CheckResult:
    """Each client of an embedded or Java store has a thread, and threads count as processes."""
    needed = clients + OTHER_THREADS
    hard = machine.processes.hard
    unit = machine.group if machine.group.endswith(UNITS) else ""
    # Each limit, with the command that raises it.
    bounds = {
        "ulimit -u": (
            machine.processes.soft,
            f"ulimit -u {needed}" if hard is None or hard >= needed else raise_hard_limit("nproc", needed),
        ),
        "kernel.threads-max": (machine.threads_max, f"sudo sysctl -w kernel.threads-max={needed}"),
        "kernel.pid_max": (machine.pid_max, f"sudo sysctl -w kernel.pid_max={PID_MAX}"),
        f"pids.max of {unit or 'the control group'}": (machine.group_processes_max, raise_group_limit(unit, needed)),
    }
    known = [(most, name, fix) for name, (most, fix) in bounds.items() if most is not None]
    if not known:
        return CheckResult("ok", "unlimited")
    most, name, fix = min(known)
    text = f"{most:,} by {name}; {format_need(clients, ' in threads')} {needed:,}"
    return CheckResult("ok", text) if most >= needed else CheckResult("warn", text, fix)


def raise_group_limit(unit: str, needed: int) -> str:
    """The command that raises the thread limit of a control group, for a systemd unit or a container."""
    if unit:
        return f"sudo systemctl set-property {unit} TasksMax={needed}"
    return f"docker update --pids-limit {needed} CONTAINER   # or restart it with --pids-limit"


def check_mappings(machine: Machine, clients: int) -> CheckResult:
    """The engine refuses to start if it needs more threads than the kernel's limit on mappings allows."""
    if machine.mappings_max is None:
        return unknown_result()
    needed = clients * MAPPINGS_PER_THREAD
    most = machine.mappings_max // MAPPINGS_PER_THREAD
    text = f"{machine.mappings_max:,}, so at most {most:,} clients in threads; {clients:,} need {needed:,}"
    if machine.mappings_max >= needed:
        return CheckResult("ok", text)
    return CheckResult("warn", text, f"sudo sysctl -w vm.max_map_count={needed}")


def raise_hard_limit(item: str, value: int) -> str:
    """The command that raises a hard limit for all later logins."""
    # `*` does not apply to root.
    return f"printf '%s - {item} {value}\\n' '*' root | sudo tee -a {LIMITS_FILE}   # then log in again"


def limit_text(limit: int | None) -> str:
    """The text for a limit."""
    return "unlimited" if limit is None else f"{limit:,}"


def check_ephemeral_ports(machine: Machine, clients: int) -> CheckResult:
    """Each connection to the same address and port needs a separate local port."""
    if machine.ephemeral_ports is None:
        return unknown_result()
    first, last = machine.ephemeral_ports
    count = last - first + 1
    text = f"{first} to {last}: {count:,} connections to one server; {format_need(clients)} {clients:,}"
    known_ports = [port for port in KNOWN_PORTS if first <= port <= last]
    wide = WIDE_RANGE[1] - WIDE_RANGE[0] + 1
    low = WIDE_RANGE[0] if clients * 2 <= wide else FIRST_PORT
    fix = f'sudo sysctl -w net.ipv4.ip_local_port_range="{low} {WIDE_RANGE[1]}"'
    if count < clients and clients > CONNECTIONS_MAX:
        most = f"{CONNECTIONS_MAX:,}"
        fix = f"# no sysctl helps: use several server addresses, or at most {most} clients"
        return CheckResult("fail", f"{text}, and one server address accepts at most {most}", fix)
    if count < clients:
        return CheckResult("fail", text, fix)
    if count < 2 * clients and low < first:
        return CheckResult("warn", f"{text}, or twice as many right after another trial", fix)
    if known_ports and low == WIDE_RANGE[0]:
        listed = ", ".join(map(str, known_ports))
        return CheckResult("warn", f"{text}; a connection may take a server's port: {listed}", fix)
    return CheckResult("ok", text)


def check_accept_queue(machine: Machine, clients: int) -> CheckResult:
    """All clients connect at the same time."""
    length, needed = machine.connections_waiting_max, min(clients, QUEUE)
    if length is None:
        return unknown_result()
    if length >= needed:
        return CheckResult("ok", f"{length:,}")
    return CheckResult("warn", f"{length:,}; {needed:,} is enough", f"sudo sysctl -w net.core.somaxconn={needed}")


def check_ports(machine: Machine, _: int) -> CheckResult:
    """A server cannot listen on a port already in use."""
    listeners = [listener for listener in machine.listeners if listener.port in KNOWN_PORTS]
    if not listeners:
        return CheckResult("ok", f"free: {', '.join(map(str, KNOWN_PORTS))}")
    pids = sorted({listener.pid for listener in listeners if listener.pid is not None})
    hint = "give `systems up` or `start` other ports (`--set port=…`)"
    hint += "; loadstone systems down NAME, if Loadstone started the processes" if pids else "; sudo ss -ltnp"
    return CheckResult("warn", f"taken: {', '.join(map(port_text, listeners))}", hint)


def port_text(listener: Listener) -> str:
    """The text for a port and the process that listens on it."""
    who = f"{listener.name or 'an unknown process'}{f', pid {listener.pid}' if listener.pid else ''}"
    return f"{listener.port} of {KNOWN_PORTS[listener.port]} by {who}"


CHECKS = (
    Check(
        "open files",
        f"the hard limit, and preferably the soft limit, is at least the number of clients + {OTHER_FILES}",
        "a connection is an open file; the load generator raises its own soft limit, but a server started from this "
        "shell might keep the current one",
        open_files,
    ),
    Check(
        "threads",
        f"at least the number of clients + {OTHER_THREADS:,}",
        "each client of an embedded store or of a Java client library has a thread",
        check_processes,
    ),
    Check(
        "memory mappings",
        f"`vm.max_map_count` is at least {MAPPINGS_PER_THREAD} for each client",
        f"a thread uses {MAPPINGS_PER_THREAD}; a process without free mappings crashes, so the load "
        "generator refuses to start",
        check_mappings,
    ),
    Check(
        "ephemeral ports",
        "at least one for each client, preferably two, and no server's port among them",
        "each connection to a server uses a separate local port, which stays in use for a minute after closing",
        check_ephemeral_ports,
    ),
    Check(
        "accept queue",
        f"`net.core.somaxconn` is at least the number of clients, or {QUEUE:,}",
        "all clients connect at the same time; clients that find the queue full wait for a second or more",
        check_accept_queue,
    ),
    Check(
        "servers' ports",
        f"{', '.join(map(str, KNOWN_PORTS))} are free",
        "`loadstone systems up` starts servers on these ports; any other server there would be measured instead",
        check_ports,
    ),
)
