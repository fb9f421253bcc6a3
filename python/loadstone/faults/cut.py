"""The fault `cut`: the victims lose their connections to peers and to all clients.

With `silence`, the cable is pulled, so senders wait until they time out. With `reset`, connections are aborted first,
and the senders' routes refuse further attempts immediately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.faults.fault import Fault, FaultError
from loadstone.faults.kill import accepts
from loadstone.systems.base import networks
from loadstone.systems.base.disks import run_command
from loadstone.systems.base.undo import Step

HINT = "see `loadstone doctor`"


class Cut(Fault):
    """Cuts off nodes that are in network namespaces."""

    def prepare(self) -> None:
        """Checks that each victim has a connected namespace. Raises LoadstoneError."""
        plan = self.running.plan
        if not plan.network:
            raise FaultError(f"{self.running.name} has no network for each node", "add `start: {isolate: network}`")
        self._root = self.running.place.root
        self._nodes = [*self.running.system.node_directories(plan)]
        for node in self._victim_nodes():
            if not networks.is_linked(self._root, node):
                raise FaultError(f"{self._nodes[node - 1]} is already cut off", "start the system again")

    def _victim_nodes(self) -> list[int]:
        return [self._nodes.index(name) + 1 for name in self.victims]

    def undo_steps(self) -> Sequence[Step]:
        """Connects each victim again."""
        links = [Step("run", command=networks.set_link(self._root, node, "up")) for node in self._victim_nodes()]
        return [*links, *(Step("run", command=("sh", "-c", f"{command} || :")) for command in self._routes("del"))]

    def _routes(self, verb: str) -> Iterator[str]:
        """The commands that make the host and the other nodes refuse packets to the victims, or undo this."""
        if self.planned.how != "reset":
            return
        victims = self._victim_nodes()
        namespaces = [networks.node_namespace(self._root, node + 1) for node in range(len(self._nodes))]
        senders = ["", *(f"-n {name} " for node, name in enumerate(namespaces, 1) if node not in victims)]
        for node in victims:
            for sender in senders:
                yield f"ip {sender}route {verb} unreachable {self.running.plan.network}.{node}/32"

    def inject(self) -> None:
        """Takes down the network links of all victims. Raises LoadstoneError."""
        if self.planned.how == "reset":
            for node in self._victim_nodes():
                run_command([*networks.enter_namespace(self._root, node), "ss", "-K", "-t", "state", "connected"], HINT)
        for command in self._routes("add"):
            run_command(command.split(), HINT)
        for node in self._victim_nodes():
            run_command(networks.set_link(self._root, node, "down"), HINT)

    def missing_effect(self) -> str | None:
        """Names the first victim that can still be reached, or the first other node that cannot be reached."""
        for name, reached in self.probe_nodes():
            if reached == (name in self.victims):
                return f"{name} can still be reached" if reached else f"{name} was not cut off, but cannot be reached"
        return None

    def remaining_effect(self) -> str | None:
        """Names the first node that cannot be reached."""
        cut = [name for name, reached in self.probe_nodes() if not reached]
        return f"{cut[0]} cannot be reached" if cut else None

    def probe_nodes(self) -> Iterator[tuple[str, bool]]:
        """Whether each node accepts connections from the host."""
        for server in self.running.running_processes():
            host, _, port = server.address.rpartition(":")
            yield server.name, accepts(host, int(port))
