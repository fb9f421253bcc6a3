"""Creates a network namespace for each node of a system, joined by a bridge in a separate namespace. Requires root.

The host is also connected, through an interface in a private network (in 10.64.0.0/10) whose address is derived from
the system's directory. A node can then be cut off from its peers and clients, while nothing else in the host's network
changes.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import pwd
import select
import socket
import threading
import time
from collections.abc import Set
from pathlib import Path

from loadstone.systems.base.disks import run_command
from loadstone.systems.base.system import SystemsError

# The last number of the host's address; the addresses of nodes end in 1, 2, …
HOST_NUMBER = 254
# See linux/sched.h.
CLONE_NEWNET = 0x40000000
# The maximum wait for all packets to arrive, and the further wait for packets on cut paths once all other packets have
# arrived.
ARRIVAL_S, GRACE_S = 0.5, 0.02
HINT = "run as root, with the program `ip` installed; `loadstone doctor` lists the faults that this host supports"


def name_prefix(root: Path) -> str:
    """The prefix of the names of a system's namespaces and interfaces; a name has at most 15 characters."""
    return "ls" + hashlib.sha256(str(root).encode()).hexdigest()[:6]


def address_prefix(root: Path) -> str:
    """The first three numbers of the addresses of the system in this directory, such as `10.77.3`."""
    digest = hashlib.sha256(str(root).encode()).digest()
    return f"10.{64 + digest[0] % 64}.{digest[1]}"


def node_namespace(root: Path, node: int) -> str:
    """The namespace of a node; nodes are numbered from 1, and 0 is the bridge."""
    return f"{name_prefix(root)}-{node}"


def enter_namespace(root: Path, node: int, user: str | None = None) -> list[str]:
    """The prefix that makes a command run in a node's namespace, without an extra process.

    Only root can enter the namespace, so the switch to `user` follows.
    """
    identity: list[str] = []
    if user is not None:
        entry = pwd.getpwnam(user)
        identity = [f"--setgid={entry.pw_gid}", f"--setuid={entry.pw_uid}"]
    return ["nsenter", f"--net=/run/netns/{node_namespace(root, node)}", *identity, "--"]


def create_networks(root: Path, nodes: int) -> None:
    """Creates the namespaces of all nodes, and the bridge, unless they exist. Raises SystemsError."""
    existing = list_namespaces()
    switch, network = node_namespace(root, 0), address_prefix(root)
    if switch not in existing:
        run_ip("netns", "add", switch)
        run_ip("-n", switch, "link", "add", "br0", "type", "bridge")
        run_ip("-n", switch, "link", "set", "br0", "up")
        connect_node(root, 0, HOST_NUMBER, network)
    for node in range(1, nodes + 1):
        name = node_namespace(root, node)
        if name not in existing:
            run_ip("netns", "add", name)
            run_ip("-n", name, "link", "set", "lo", "up")
            connect_node(root, node, node, network)
            # A strict filter would also drop the answers on a path that is cut in one direction (ip-sysctl.rst).
            files = [f"/proc/sys/net/ipv4/conf/{name}/rp_filter" for name in ("all", link_name(root, node))]
            run_command([*enter_namespace(root, node), "sh", "-c", f"echo 0 | tee {' '.join(files)}"], HINT)


def connect_node(root: Path, node: int, number: int, network: str) -> None:
    """Connects a node's namespace, or the host (0), to the bridge."""
    inside, here = link_name(root, node), enter_node(root, node)
    port = ("peer", "name", bridge_port(node), "netns", node_namespace(root, 0))
    run_ip(*here, "link", "add", inside, "type", "veth", *port)
    run_ip(*here, "addr", "add", f"{network}.{number}/24", "dev", inside)
    run_ip(*here, "link", "set", inside, "up")
    run_ip("-n", node_namespace(root, 0), "link", "set", bridge_port(node), "master", "br0", "up")


def link_name(root: Path, node: int) -> str:
    """The name of the interface that connects a node, or the host (0), to the bridge."""
    return f"{name_prefix(root)}v{node}"


def enter_node(root: Path, node: int) -> list[str]:
    """The options with which `ip` works on a node or on the host (0)."""
    return ["-n", node_namespace(root, node)] if node else []


def node_address(root: Path, node: int) -> str:
    """The address of a node or of the host (0) in the network."""
    return f"{address_prefix(root)}.{node or HOST_NUMBER}"


def bridge_port(node: int) -> str:
    """The name of the bridge's interface to a node."""
    return f"p{node}"


def set_link(root: Path, node: int, state: str) -> tuple[str, ...]:
    """The command that connects (`up`) or cuts off (`down`) a node."""
    return ("ip", "-n", node_namespace(root, 0), "link", "set", bridge_port(node), state)


def is_linked(root: Path, node: int) -> bool:
    """Whether a node is connected to the bridge. Raises SystemsError."""
    links = json.loads(run_ip("-n", node_namespace(root, 0), "-j", "link", "show", bridge_port(node)))
    return "UP" in links[0]["flags"]


def sink_name(root: Path, node: int) -> str:
    """The name of the sink of a node, or of the host (node 0): an interface whose packets disappear."""
    return f"{name_prefix(root)}x{node}"


def open_sink(root: Path, node: int) -> None:
    """Creates an interface whose packets disappear: it is connected to no bridge. Raises SystemsError."""
    here, name = enter_node(root, node), sink_name(root, node)
    peer = ("peer", "name", f"x{node}", "netns", node_namespace(root, 0))
    run_ip(*here, "link", "add", name, "type", "veth", *peer)
    run_ip("-n", node_namespace(root, 0), "link", "set", f"x{node}", "up")
    # Without address resolution, packets are sent rather than refused.
    run_ip(*here, "link", "set", name, "arp", "off", "up")


def close_sink(root: Path, node: int) -> tuple[str, ...]:
    """The command that removes the sink and its routes, if the sink exists."""
    ip, name = " ".join(["ip", *enter_node(root, node)]), sink_name(root, node)
    return ("sh", "-c", f"! {ip} link show {name} >/dev/null 2>&1 || {ip} link del {name}")


def drop_path(root: Path, sender: int, receiver: int) -> None:
    """Diverts packets from a sender to a receiver into the sender's sink. Raises SystemsError."""
    route = (f"{node_address(root, receiver)}/32", "dev", sink_name(root, sender), "src", node_address(root, sender))
    run_ip(*enter_node(root, sender), "route", "add", *route)


def refuse_path(root: Path, sender: int, receiver: int) -> None:
    """Refuses packets from a sender to a receiver immediately. Raises SystemsError."""
    run_ip(*enter_node(root, sender), "route", "add", "unreachable", f"{node_address(root, receiver)}/32")


def accept_path(root: Path, sender: int, receiver: int) -> tuple[str, ...]:
    """The command that undoes `refuse_path`, if necessary."""
    route = ("type", "unreachable", f"{node_address(root, receiver)}/32")
    return ("ip", *enter_node(root, sender), "route", "flush", *route)


def abort_connections(root: Path, sender: int, receiver: int) -> None:
    """Aborts a sender's connections to a receiver. Raises SystemsError."""
    here = enter_namespace(root, sender) if sender else []
    run_command([*here, "ss", "-K", "-t", "state", "connected", "dst", node_address(root, receiver)], HINT)


def probe_paths(root: Path, paths: Set[tuple[int, int]], cut: Set[tuple[int, int]]) -> Set[tuple[int, int]]:
    """The paths on which a packet arrives; packets on the paths in `cut` are sent first, and should not arrive.

    Raises SystemsError.
    """
    nodes = sorted({node for path in paths for node in path})
    key = os.urandom(8)
    arrived: set[tuple[int, int]] = set()
    with contextlib.ExitStack() as stack:
        sockets = {node: stack.enter_context(open_socket(root, node)) for node in nodes}
        # The host sends first, because its firewall may accept only answers.
        for sender, receiver in sorted(paths, key=lambda path: (path not in cut, path)):
            with contextlib.suppress(OSError):
                sockets[sender].sendto(key + bytes((sender, receiver)), sockets[receiver].getsockname())
        until = time.monotonic() + ARRIVAL_S
        while (wait_s := until - time.monotonic()) > 0 and len(arrived) < len(paths):
            for ready in select.select([*sockets.values()], [], [], wait_s)[0]:
                packet = ready.recv(64)
                if packet.startswith(key):
                    arrived.add((packet[-2], packet[-1]))
            if arrived >= paths - cut:
                until = min(until, time.monotonic() + GRACE_S)
        return arrived


def open_socket(root: Path, node: int) -> socket.socket:
    """A UDP socket in the namespace of a node, or on the host (0). Raises SystemsError."""
    sockets: list[socket.socket] = []
    errors: list[OSError] = []

    # A thread can change only its own namespace; a socket remains in the namespace in which it was created.
    def create_socket() -> None:
        try:
            if node:
                with Path("/run/netns", node_namespace(root, node)).open() as file:
                    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sockets[0].bind((node_address(root, node), 0))
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=create_socket)
    thread.start()
    thread.join()
    if errors:
        raise SystemsError(f"cannot probe {node_namespace(root, node)}: {errors[0].strerror}", HINT) from errors[0]
    return sockets[0]


def remove_networks(root: Path) -> None:
    """Removes the namespaces of a system and all their interfaces. Raises SystemsError."""
    # The kernel removes interfaces some time after their namespace, and until then, the name on the host stays in use.
    for name in (link_name(root, 0), sink_name(root, 0)):
        if Path("/sys/class/net", name).exists():
            run_ip("link", "del", name)
    for name in list_namespaces():
        if name.startswith(f"{name_prefix(root)}-"):
            run_ip("netns", "del", name)


def list_namespaces() -> list[str]:
    """The names of all namespaces."""
    directory = Path("/run/netns")
    return sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []


def run_ip(*arguments: str) -> str:
    """The output of `ip`. Raises SystemsError."""
    return run_command(["ip", *arguments], HINT)


def probe_path(root: Path) -> str | None:
    """Cuts one direction of the connection to a node, and returns the reason for a failure. Raises SystemsError."""
    paths = {(0, 1), (1, 0)}
    cuts: tuple[set[tuple[int, int]], ...] = (set(), {(1, 0)})
    for cut in cuts:
        for sender, receiver in cut:
            open_sink(root, sender)
            drop_path(root, sender, receiver)
        if probe_paths(root, paths, cut) != paths - cut:
            return "packets in one direction cannot be dropped" if cut else "packets between nodes do not arrive"
    return None


def probe_network() -> str | None:
    """Creates a network with one node, cuts it off, and removes the network; returns the reason for a failure."""
    root = Path(f"/loadstone-probe-{id(run_ip)}")
    try:
        create_networks(root, 1)
        run_command(set_link(root, 1, "down"), HINT)
        if is_linked(root, 1):
            return "a node cannot be cut off"
        run_command(set_link(root, 1, "up"), HINT)
        return probe_path(root)
    except SystemsError as error:
        return str(error.args[0])
    finally:
        with contextlib.suppress(SystemsError):
            remove_networks(root)
