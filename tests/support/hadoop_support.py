"""Shared by the tests of HDFS and HBase: free ports, and the addresses of servers."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from pathlib import Path

from loadstone.systems.base.running_system import RunningSystem, ServerState
from systems_support import free_port

LISTENING = "0A"


def hdfs_ports(data_nodes: int) -> dict[str, str]:
    """Free ports for an HDFS."""
    data = free_port(offsets=[10 * node + port for node in range(data_nodes) for port in range(3)])
    # The ports after the data nodes' ports.
    port = free_port(after=data + 10 * data_nodes)
    return {"data.port": str(data), "port": str(port), "http.port": str(free_port(after=port))}


def hbase_ports(region_servers: int) -> dict[str, str]:
    """Free ports for an HBase."""
    hosts = [f"127.0.0.{number}" for number in range(1, region_servers + 1)]
    result, port = {}, 0
    for name in (
        "hbase.zookeeper.property.clientPort",
        "hbase.master.port",
        "hbase.master.info.port",
        "hbase.regionserver.port",
        "hbase.regionserver.info.port",
    ):
        port = free_port(hosts, after=port)
        result[name] = str(port)
    return result


def listening(running: RunningSystem) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses on which a system's servers listen."""
    inodes = set()
    for process in running.running_processes():
        for handle in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(handle))
    result = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            arguments = line.split()
            if arguments[3] == LISTENING and f"socket:[{arguments[9]}]" in inodes:
                result.add(address(arguments[1].partition(":")[0]))
    assert result
    return result


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address in the kernel's format: words of 32 bits in this machine's byte order."""
    packed = b"".join(bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8))
    result = ipaddress.ip_address(packed)
    return getattr(result, "ipv4_mapped", None) or result


def states(running: RunningSystem) -> dict[str, ServerState]:
    return {server.name: state for server, state in running.status()}
