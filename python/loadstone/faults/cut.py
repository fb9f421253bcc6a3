"""The fault `cut`: packets between the victims and their peers are lost or refused.

By default, a victim is cut off from all other servers and from all clients, in both directions. `peer` limits the cut
to the path to one server or to the clients; `direction` limits the cut to the packets that a victim sends or receives.

With `silence`, packets disappear, so senders wait until they time out. With `reset`, the senders' connections are
aborted, and the senders' routes refuse further packets immediately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.experiment.model.faults import CLIENTS
from loadstone.faults.fault import Fault, FaultError
from loadstone.faults.kill import accepts
from loadstone.systems.base import networks
from loadstone.systems.base.disks import run_command
from loadstone.systems.base.undo import Step

HINT = "see `loadstone doctor`"
# A pair of sender and receiver. Nodes are numbered from 1; 0 is the host, on which the clients run.
Path = tuple[int, int]


class Cut(Fault):
    """Cuts the connections of nodes in network namespaces."""

    def prepare(self) -> None:
        """Checks that each victim has a connected namespace, and that all packets arrive. Raises LoadstoneError."""
        plan = self.running.plan
        if not plan.network:
            raise FaultError(f"{self.running.name} has no network for each node", "add `start: {isolate: network}`")
        self._root = self.running.place.root
        self._names = [CLIENTS, *self.running.system.node_directories(plan)]
        self._every = {(a, b) for a in range(len(self._names)) for b in range(len(self._names)) if a != b}
        self._cut = set(self._list_paths())
        if reason := self._find_difference(set()):
            raise FaultError(reason, "start the system again")

    def _victim_nodes(self) -> list[int]:
        return [self._names.index(name) for name in self.victims]

    def _list_paths(self) -> Iterator[Path]:
        """The paths that the fault cuts."""
        peers = range(len(self._names))
        if self.planned.peer:
            peers = range(at := self._names.index(self.planned.peer), at + 1)
        for victim in self._victim_nodes():
            for peer in peers:
                if peer != victim and self.planned.direction != "in":
                    yield victim, peer
                if peer != victim and self.planned.direction != "out":
                    yield peer, victim

    def _unplugs(self) -> bool:
        """Whether the links of the victims are taken down."""
        return self.planned.how == "silence" and not self.planned.is_partial_cut

    def _senders(self) -> list[int]:
        return sorted({sender for sender, _ in self._cut})

    def undo_steps(self) -> Sequence[Step]:
        """Connects each victim again."""
        if self._unplugs():
            return [Step("run", command=networks.set_link(self._root, node, "up")) for node in self._victim_nodes()]
        if self.planned.how == "silence":
            return [Step("run", command=networks.close_sink(self._root, node)) for node in self._senders()]
        return [Step("run", command=networks.accept_path(self._root, *path)) for path in sorted(self._cut)]

    def inject(self) -> None:
        """Cuts all paths. Raises LoadstoneError."""
        if self._unplugs():
            for node in self._victim_nodes():
                run_command(networks.set_link(self._root, node, "down"), HINT)
        elif self.planned.how == "silence":
            for node in self._senders():
                networks.open_sink(self._root, node)
            for path in sorted(self._cut):
                networks.drop_path(self._root, *path)
        else:
            # Before the cut, the aborts also reach the receivers. The second call aborts later connections.
            self._abort_connections()
            for path in sorted(self._cut):
                networks.refuse_path(self._root, *path)
            self._abort_connections()

    def _abort_connections(self) -> None:
        for sender, receiver in sorted(self._cut):
            networks.abort_connections(self._root, sender, receiver)

    def missing_effect(self) -> str | None:
        """Names the first cut path on which packets still arrive, or the first intact path on which they are lost."""
        return self._find_difference(self._cut)

    def _find_difference(self, cut: set[Path]) -> str | None:
        arrived = networks.probe_paths(self._root, self._every, cut)
        for sender, receiver in sorted(arrived & cut):
            return f"packets from {self._names[sender]} to {self._names[receiver]} still arrive"
        for sender, receiver in sorted(self._every - cut - arrived):
            return f"packets from {self._names[sender]} to {self._names[receiver]} are lost, but were not cut off"
        return None

    def remaining_effect(self) -> str | None:
        """Names the first path on which packets are lost, or the first server that cannot be reached."""
        if reason := self._find_difference(set()):
            return reason
        for server in self.running.running_processes():
            host, _, port = server.address.rpartition(":")
            if not accepts(host, int(port)):
                return f"{server.name} cannot be reached"
        return None

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The mechanism, and the part of the connections that was cut."""
        parts = {"peer": self.planned.peer, "direction": self.planned.direction}
        return {"how": self.planned.how, **({name: part for name, part in parts.items() if part and part != "both"})}
