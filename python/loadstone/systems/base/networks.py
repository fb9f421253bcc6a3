"""Creates a network namespace for each node of a system, joined by a bridge in a separate namespace. Requires root.

The host is also connected, through an interface in a private network (in 10.64.0.0/10) whose address is derived from
the system's directory. A node can then be cut off from its peers and clients, while nothing else in the host's network
changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from loadstone.systems.base.disks import run_command
from loadstone.systems.base.system import SystemsError

# The last number of the host's address; the addresses of nodes end in 1, 2, …
HOST_NUMBER = 254
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


def enter_namespace(root: Path, node: int) -> list[str]:
    """The prefix that makes a command run in a node's namespace, without an extra process."""
    return ["nsenter", f"--net=/run/netns/{node_namespace(root, node)}", "--"]


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


def connect_node(root: Path, node: int, number: int, network: str) -> None:
    """Connects a node's namespace, or the host (0), to the bridge."""
    inside = f"{name_prefix(root)}v{node}"
    here = ["-n", node_namespace(root, node)] if node else []
    port = ("peer", "name", bridge_port(node), "netns", node_namespace(root, 0))
    run_ip(*here, "link", "add", inside, "type", "veth", *port)
    run_ip(*here, "addr", "add", f"{network}.{number}/24", "dev", inside)
    run_ip(*here, "link", "set", inside, "up")
    run_ip("-n", node_namespace(root, 0), "link", "set", bridge_port(node), "master", "br0", "up")


def bridge_port(node: int) -> str:
    """The bridge's interface to a node."""
    return f"p{node}"


def set_link(root: Path, node: int, state: str) -> tuple[str, ...]:
    """The command that connects (`up`) or cuts off (`down`) a node."""
    return ("ip", "-n", node_namespace(root, 0), "link", "set", bridge_port(node), state)


def is_linked(root: Path, node: int) -> bool:
    """Whether a node is connected to the bridge. Raises SystemsError."""
    links = json.loads(run_ip("-n", node_namespace(root, 0), "-j", "link", "show", bridge_port(node)))
    return "UP" in links[0]["flags"]


def remove_networks(root: Path) -> None:
    """Removes the namespaces of a system and all their interfaces. Raises SystemsError."""
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


def probe_network() -> str | None:
    """Creates a network with one node, cuts it off, and removes the network; returns the reason for a failure."""
    root = Path(f"/loadstone-probe-{id(run_ip)}")
    try:
        create_networks(root, 1)
        run_command(set_link(root, 1, "down"), HINT)
        if is_linked(root, 1):
            return "a node cannot be cut off"
    except SystemsError as error:
        return str(error.args[0])
    finally:
        with contextlib.suppress(SystemsError):
            remove_networks(root)
    return None
