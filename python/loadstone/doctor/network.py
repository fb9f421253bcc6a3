"""Ports and queues of the network, between clients and servers of one machine."""

from __future__ import annotations

from loadstone.doctor.check import Check, Seen, unknown
from loadstone.doctor.machine import Machine
from loadstone.observe.listeners import Listener

# What the systems listen on, by default.
KNOWN_PORTS = {
    9042: "cassandra",
    7000: "cassandra",
    2181: "zookeeper",
    16000: "hbase",
    16020: "hbase",
    9820: "hdfs",
    9870: "hdfs",
    6379: "redis",
    5432: "postgres",
}
# Above all known ports.
WIDE_RANGE = (20_000, 65_535)
# Ports below are the system's, so one address of a server takes no more connections than this.
FIRST_PORT = 1024
CONNECTIONS_MAX = WIDE_RANGE[1] - FIRST_PORT + 1
QUEUE = 4096


def ephemeral(machine: Machine, clients: int) -> Seen:
    """Each connection to one address and port needs a port of its own to come from."""
    if machine.ephemeral_ports is None:
        return unknown()
    first, last = machine.ephemeral_ports
    count = last - first + 1
    found = f"{first} to {last}: {count:,} connections to one server; {clients:,} clients need {clients:,}"
    taken = [port for port in KNOWN_PORTS if first <= port <= last]
    wide = WIDE_RANGE[1] - WIDE_RANGE[0] + 1
    low = WIDE_RANGE[0] if clients * 2 <= wide else FIRST_PORT
    fix = f'sudo sysctl -w net.ipv4.ip_local_port_range="{low} {WIDE_RANGE[1]}"'
    if count < clients and clients > CONNECTIONS_MAX:
        most = f"{CONNECTIONS_MAX:,}"
        fix = f"# no sysctl helps: use servers at several addresses, or at most {most} clients"
        return Seen("fail", f"{found}, and one server address takes {most} at most", fix)
    if count < clients:
        return Seen("fail", found, fix)
    if count < 2 * clients and low < first:
        return Seen("warn", f"{found}, twice that right after another trial", fix)
    if taken and low == WIDE_RANGE[0]:
        listed = ", ".join(map(str, taken))
        return Seen("warn", f"{found}; a connection may take a server's port: {listed}", fix)
    return Seen("ok", found)


def accepting(machine: Machine, clients: int) -> Seen:
    """Clients connect all at once."""
    length, needed = machine.connections_waiting_max, min(clients, QUEUE)
    if length is None:
        return unknown()
    if length >= needed:
        return Seen("ok", f"{length:,}")
    return Seen("warn", f"{length:,}, {needed:,} would do", f"sudo sysctl -w net.core.somaxconn={needed}")


def ports(machine: Machine, _: int) -> Seen:
    """A server cannot listen where another does."""
    held = [each for each in machine.listeners if each.port in KNOWN_PORTS]
    if not held:
        return Seen("ok", f"free: {', '.join(map(str, KNOWN_PORTS))}")
    pids = sorted({each.pid for each in held if each.pid is not None})
    killing = f"kill {' '.join(map(str, pids))}" if pids else "sudo ss -ltnp"
    note = "or loadstone systems down NAME, if it is ours" if pids else "shows who holds them"
    return Seen("warn", f"taken: {', '.join(map(holder, held))}", f"{killing}   # {note}")


def holder(listener: Listener) -> str:
    """A port, with the process that listens on it."""
    who = f"{listener.name or 'somebody'}{f', pid {listener.pid}' if listener.pid else ''}"
    return f"{listener.port} of {KNOWN_PORTS[listener.port]} by {who}"


CHECKS = (
    Check(
        "ephemeral ports",
        "as many as clients, better twice as many, and no server's port among them",
        "each connection to one server comes from a port of its own, which stays taken for a minute after its end",
        ephemeral,
    ),
    Check(
        "accept queue",
        f"`net.core.somaxconn` is at least the clients, or {QUEUE:,}",
        "clients connect all at once; those that find the queue full wait for a second or more",
        accepting,
    ),
    Check(
        "servers' ports",
        f"nobody listens on {', '.join(map(str, KNOWN_PORTS))}",
        "`loadstone systems up` starts servers there, and a server of somebody else's would be measured instead",
        ports,
    ),
)
