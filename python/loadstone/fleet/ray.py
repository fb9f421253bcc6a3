"""Sends requests to the agents on hosts through Ray. Only this file imports Ray, and only in a child process.

Ray terminates its driver if the head of the cluster has been unreachable for 60 s; no `except` or `finally` block runs.
The driver is therefore a child of the lab. The lab exchanges lines of JSON with the driver, and survives its exit. The
driver has one actor per host, pinned to the host's node. Actors are never restarted (`max_restarts=0`): a restarted
actor would have lost its engines.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from loadstone.errors import LoadstoneError
from loadstone.fleet.clock import HostClock, ShiftedClock
from loadstone.fleet.transport import Host, Reply

# The port of Ray's head, for an address without a port.
PORT = 6379
CONNECT_SECONDS = 120.0
# Shifts the clocks of agents, for tests and demonstrations: `{"host2": {"offset_ns": 80000000, "drift": 0.0002}}`.
CLOCKS = "LOADSTONE_FLEET_CLOCKS"
INSTALL = "install it on this machine and on every host: pip install 'ray>=2.60,<3'"
AGENT = "loadstone-agent-"
# The maximum number of concurrent calls to an agent: a poll, commands, heartbeats, and commands to servers.
CALLS_MAX = 16
CHILD = "from loadstone.fleet.ray import run_driver; run_driver()"
# The names of Ray's processes on a host, except the actor itself.
PROCESSES = ("raylet", "gcs_server", "ray::DashboardAg", "ray::RuntimeEnvA", "runtime_env_age", "log_monitor")


class RayTransport:
    """The lab's side of the transport, which runs Ray's driver as a child process."""

    def __init__(self, address: str, seconds: float = CONNECT_SECONDS) -> None:
        """Connects to the cluster. Raises LoadstoneError if there is no cluster, or Ray is not installed."""
        self.hosts: Sequence[Host] = ()
        self._address = address
        self._seconds = seconds
        # The timer that enforces a phase's time limit writes from a separate thread.
        self._writing = threading.Lock()
        # The number of actors that have been started on each node so far.
        self._generations: dict[str, int] = {}
        self._connect()

    def open(self, host: int) -> None:
        """Starts an actor on a host, in place of any earlier actor."""
        if self._is_ended:
            self._reconnect()
        chosen = self.hosts[host]
        # Replies from the earlier actor have an older generation, and are ignored.
        self._generations[chosen.node] = self._generations.get(chosen.node, 0) + 1
        self._tell({"open": chosen.node, "name": chosen.name, "address": chosen.address, **self._stamp(host)})

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        """Sends a request to the actor of a host."""
        self._tell({"send": self.hosts[host].node, "request": request, **self._stamp(host)})

    def ship(self, host: int, path: Path, sha256: str) -> None:
        """Sends a program to a host; `receive` returns the reply."""
        self._tell({"ship": self.hosts[host].node, "path": str(path), "sha256": sha256, **self._stamp(host)})

    def _stamp(self, host: int) -> dict[str, int]:
        return {"generation": self._generations.get(self.hosts[host].node, 0)}

    def receive(self, seconds: float) -> Sequence[Reply]:
        """The replies that have arrived; after the child has exited, an error for each host."""
        lines: list[dict[str, Any] | None] = []
        try:
            lines.append(self._lines.get(timeout=seconds))
            while True:
                lines.append(self._lines.get_nowait())
        except queue.Empty:
            pass
        places = {host.node: number for number, host in enumerate(self.hosts)}
        replies = []
        for line in lines:
            if line is None:
                self._is_ended = True
                reason = "the connection to the cluster's head was lost"
                now_ns = time.time_ns()
                replies += [Reply(number, now_ns, now_ns, None, reason) for number in places.values()]
            elif line.get("host") in places and line["generation"] == self._generations.get(line["host"], 0):
                stamps = line["sent_ns"], line["returned_ns"]
                replies.append(Reply(places[line["host"]], *stamps, line.get("body"), line.get("error", "")))
        return replies

    def stop_agents(self) -> list[str]:
        """Kills every agent in the cluster, whichever lab started it; returns the agents' names."""
        self._tell({"stop": True})
        while (line := self._lines.get(timeout=self._seconds)) is not None:
            if "stopped" in line:
                return list(line["stopped"])
        return []

    def close(self) -> None:
        """Stops every actor and the child."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(15)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        self._process.wait()

    def _connect(self) -> None:
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        pipe = subprocess.PIPE
        # In a separate process group, so that Ctrl-C reaches only the lab, which then decides how to stop its engines.
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, self._address], stdin=pipe, stdout=pipe, stderr=pipe, process_group=0
        )
        self._stderr: list[str] = []
        self._is_ended = False
        threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True).start()
        threading.Thread(target=self._read, args=(self._process.stdout, self._lines), daemon=True).start()
        try:
            first = self._lines.get(timeout=self._seconds)
        except queue.Empty:
            first = {"error": f"no answer within {self._seconds:g} s"}
        if first is None or "hosts" not in first:
            self._process.kill()
            self._process.wait()
            reason = first["error"] if first else (self._stderr[-1:] or ["its driver exited"])[0]
            hint = first.get("hint") if first else None
            raise LoadstoneError(
                f"cannot connect to the Ray cluster at {self._address}: {reason}",
                hint
                or "start the head node (`ray start --head`), specify its address (`fleet: {address: HOST:6379}`), and "
                "set RAY_AUTH_TOKEN as on the head",
            )
        self.hosts = [Host(**host) for host in first["hosts"]]

    def _reconnect(self) -> None:
        """Connects again after the loss of the head. Raises LoadstoneError if hosts have changed."""
        before = self.hosts
        self._process.kill()
        self._process.wait()
        self._connect()
        nodes = {host.name: host for host in self.hosts}
        if missing := [host.name for host in before if host.name not in nodes]:
            raise LoadstoneError(f"hosts have left the cluster: {', '.join(missing)}", "start Ray there again")
        self.hosts = [nodes[host.name] for host in before]

    @staticmethod
    def _read(stream: IO[bytes], lines: queue.Queue[dict[str, Any] | None]) -> None:
        for line in stream:
            lines.put(json.loads(line))
        lines.put(None)

    def _read_stderr(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._stderr = [*self._stderr[-20:], line.decode(errors="replace").strip()]

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        # If the child has exited, `receive` reports it.
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()


def own_address(address: str) -> str | None:
    """The local address of connections to the head; None if `address` names no host: the head is then on this
    machine."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port or PORT)))
        return str(probe.getsockname()[0])


def clock_of(name: str) -> HostClock:
    """The clock of a host's agent: the kernel's clock, unless a test shifts it."""
    shifts = json.loads(os.environ.get(CLOCKS, "{}"))
    if name not in shifts:
        return HostClock()
    return ShiftedClock(**shifts[name], since_ns=time.time_ns())


def processes_of_ray(proc: Path = Path("/proc")) -> dict[str, int]:
    """Ray's processes on this host, keyed by name. The raylet is the parent of every worker."""
    own, raylet = os.getpid(), os.getppid()
    names = {"ray.actor": own, "ray.raylet": raylet}
    for path in proc.glob("[0-9]*"):
        try:
            text = (path / "stat").read_text()
        except OSError:
            continue
        command, _, rest = text.partition("(")[2].rpartition(")")
        is_child = int(rest.split()[1]) == raylet
        if int(path.name) != own and (is_child or command in PROCESSES):
            names[f"ray.{path.name}"] = int(path.name)
    return names


class Actor:
    """The agent as a Ray actor."""

    def __init__(self, name: str) -> None:
        from loadstone.fleet.agent import Agent

        self._agent = Agent(clock_of(name), processes_of_ray(), name)

    def exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Calls `Agent.exchange`."""
        return self._agent.exchange(request)

    def install(self, program: bytes, sha256: str) -> dict[str, Any]:
        """Calls `Agent.install`."""
        return self._agent.install(program, sha256)


def run_driver() -> None:
    """Runs the driver, which reads requests from stdin and writes replies to stdout."""
    # Only replies may reach the lab's pipe.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        import ray
    except ImportError:
        print(json.dumps({"error": "Ray is not installed", "hint": INSTALL}), file=output)
        return
    address = sys.argv[1]
    # Set in every process; otherwise, the first `ray.init` writes a token that silently turns authentication on.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(
            address=address,
            namespace="loadstone",
            log_to_driver=False,
            logging_level="error",
            _node_ip_address=own_address(address),
        )
        nodes = [node for node in ray.nodes() if node["Alive"]]
    except Exception as error:
        print(json.dumps({"error": str(error).strip().splitlines()[0]}), file=output)
        return
    Driver(ray, output).run(nodes)
    ray.shutdown()


class Driver:
    """Handles the driver's requests and replies."""

    def __init__(self, ray: Any, output: IO[str]) -> None:
        self._ray = ray
        self._output = output
        self._lock = threading.Lock()
        self._actors: dict[str, Any] = {}
        self._programs: dict[str, Any] = {}

    def run(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Handles requests until stdin closes, then kills every actor."""
        self._write({"hosts": name_hosts(nodes)})
        for line in sys.stdin:
            message = json.loads(line)
            try:
                self._obey(message)
            except Exception as error:
                now_ns = time.time_ns()
                node = message.get("open") or message.get("send") or message.get("ship")
                stamps = {"sent_ns": now_ns, "returned_ns": now_ns, "generation": message.get("generation")}
                self._write({"host": node, "error": f"{type(error).__name__}: {error}", **stamps})
        for actor in self._actors.values():
            self._ray.kill(actor)

    def _obey(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"open": node, "name": name, "address": address}:
                self._open(node, name, address)
            case {"send": node, "request": request, "generation": generation} if node in self._actors:
                self._call(node, generation, self._actors[node].exchange, request)
            case {"stop": _}:
                names = [entry["name"] for entry in self._ray.util.list_named_actors(all_namespaces=True)]
                agents = [name for name in names if name.startswith(AGENT)]
                for name in agents:
                    self._ray.kill(self._ray.get_actor(name, namespace="loadstone"))
                self._write({"stopped": agents})
            case {"ship": node, "path": path, "sha256": sha256, "generation": generation}:
                if sha256 not in self._programs:
                    # Ray transfers the object to each host only once.
                    self._programs[sha256] = self._ray.put(Path(path).read_bytes())
                self._call(node, generation, self._actors[node].install, self._programs[sha256], sha256)

    def _open(self, node: str, name: str, address: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if (earlier := self._actors.pop(node, None)) is not None:
            self._ray.kill(earlier)
        # After Ray has been restarted on a host, its node has a different ID.
        alive = [
            part["NodeID"] for part in self._ray.nodes() if part["Alive"] and part["NodeManagerAddress"] == address
        ]
        if not alive:
            raise ConnectionError("the host has left the cluster")
        strategy = NodeAffinitySchedulingStrategy(node_id=node if node in alive else alive[0], soft=False)
        remote = self._ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=CALLS_MAX)(Actor)
        variables = {CLOCKS: os.environ[CLOCKS]} if CLOCKS in os.environ else {}
        # The actor has a name, so that `loadstone fleet stop` finds it even after its lab has exited.
        title = f"{AGENT}{name}-{os.getpid()}-{time.time_ns()}"
        options = {
            "name": title,
            "scheduling_strategy": strategy,
            "runtime_env": {"env_vars": variables} if variables else None,
        }
        self._actors[node] = remote.options(**options).remote(name)

    def _call(self, node: str, generation: int, method: Any, *arguments: Any) -> None:
        sent_ns = time.time_ns()
        future = method.remote(*arguments).future()
        future.add_done_callback(partial(self._reply, node, generation, sent_ns))

    def _reply(self, node: str, generation: int, sent_ns: int, future: Any) -> None:
        stamps = {"sent_ns": sent_ns, "returned_ns": time.time_ns(), "generation": generation}
        reply = {"host": node, **stamps}
        try:
            reply["body"] = future.result()
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        self._write(reply)

    def _write(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            print(json.dumps(message, separators=(",", ":")), file=self._output, flush=True)


def name_hosts(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The hosts of Ray's nodes, sorted by host name, with the head first; equal names are distinguished by a number."""
    hosts: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for node in sorted(nodes, key=lambda node: (not is_head(node), node["NodeManagerHostname"], node["NodeID"])):
        name = node["NodeManagerHostname"]
        counts[name] = counts.get(name, 0) + 1
        labels = {key: text for key, text in node.get("Labels", {}).items() if not key.startswith("ray.io/")}
        hosts.append(
            {
                "name": name if counts[name] == 1 else f"{name}-{counts[name]}",
                "node": node["NodeID"],
                "address": node["NodeManagerAddress"],
                "labels": labels,
                "is_head": is_head(node),
            }
        )
    return hosts


def is_head(node: Mapping[str, Any]) -> bool:
    """Whether a node is the head of its cluster."""
    return "node:__internal_head__" in node.get("Resources", {})
