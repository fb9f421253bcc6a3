"""An in-memory ScyllaDB of one node with shards, for the statements of cassandra-stress.

Extensions: `protocol-extensions.md` in scylladb/scylladb.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from scripted_cassandra import CassandraLine, FakeCassandra, Script
from scripted_relay import BACKLOG, Line

RATE_LIMIT = 0xF000
IGNORED_BITS = 12
PARTITIONER = "org.apache.cassandra.dht.Murmur3Partitioner"
MASK = (1 << 64) - 1


class FakeScylla(FakeCassandra):
    """One node. `assign` chooses the shard of a connection from its number, unless the client's port determines it."""

    def __init__(
        self, script: Script | None = None, *, shards: int = 4, assign: Callable[[int], int] | None = None
    ) -> None:
        super().__init__(script)
        self.shards = shards
        self.assign = assign or (lambda number: number % self.shards)
        # The state of the port where the client's port determines the shard: `open`, `absent`, `closed` by a firewall,
        # or `translated` (the server sees another port of the client).
        self.shard_port_state = "open"
        self.shard_port = 0
        # The shards of all connections, by port: True is the port where the client's port determines the shard.
        self.opened: dict[bool, list[int]] = {False: [], True: []}
        # The key of each execution and the shard at which it arrived.
        self.arrivals: list[tuple[bytes, int]] = []

    def line(self) -> Line:
        return ScyllaLine(self, by_port=False)

    async def _open_port(self) -> None:
        await super()._open_port()
        shard_server = await self._loop.create_server(
            lambda: ScyllaLine(self, by_port=True), self.address, 0, backlog=BACKLOG
        )
        self.shard_port = shard_server.sockets[0].getsockname()[1]
        if self.shard_port_state in ("closed", "absent"):
            shard_server.close()

    def find_misplaced(self) -> list[tuple[bytes, int]]:
        """The executions that arrived at a shard that does not own their key."""
        return [(key, shard) for key, shard in self.arrivals if shard != shard_of(key, self.shards)]

    def arrivals_by_shard(self) -> Counter[int]:
        """The number of executions at each shard."""
        return Counter(shard for _, shard in self.arrivals)


class ScyllaLine(CassandraLine):
    """One connection, which leads to a shard."""

    owner: FakeScylla

    def __init__(self, owner: FakeScylla, *, by_port: bool) -> None:
        super().__init__(owner)
        self.by_port = by_port
        self.shard = 0

    def handle_open(self) -> None:
        owner = self.owner
        if self.by_port and owner.shard_port_state == "open":
            self.shard = self.transport.get_extra_info("peername")[1] % owner.shards
        else:
            self.shard = owner.assign(len(owner.opened[False]))
        owner.opened[self.by_port].append(self.shard)

    def list_options(self) -> Mapping[str, str]:
        owner = self.owner
        options = {
            "SCYLLA_SHARD": str(self.shard),
            "SCYLLA_NR_SHARDS": str(owner.shards),
            "SCYLLA_SHARDING_IGNORE_MSB": str(IGNORED_BITS),
            "SCYLLA_SHARDING_ALGORITHM": "biased-token-round-robin",
            "SCYLLA_PARTITIONER": PARTITIONER,
            "SCYLLA_RATE_LIMIT_ERROR": f"ERROR_CODE={RATE_LIMIT}",
        }
        if owner.shard_port_state != "absent":
            options["SCYLLA_SHARD_AWARE_PORT"] = str(owner.shard_port)
        return options

    def _execute(self, stream: int, body: bytes) -> None:
        before = len(self.owner.executions)
        super()._execute(stream, body)
        self.owner.arrivals.append((self.owner.executions[before].key, self.shard))


def shard_of(key: bytes, shards: int) -> int:
    """The shard that owns a key."""
    biased = (token(key) + (1 << 63) << IGNORED_BITS) & MASK
    return biased * shards >> 64


def token(key: bytes) -> int:
    """The first half of Murmur3 (x64, 128 bits) of a key with fewer than 16 bytes, all of them below 0x80."""
    assert len(key) < 16
    assert key.isascii()
    k1, k2 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = rotate_left(k1 * c1 & MASK, 31) * c2 & MASK ^ len(key)
    h2 = rotate_left(k2 * c2 & MASK, 33) * c1 & MASK ^ len(key)
    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    first = mix_bits(h1) + mix_bits(h2) & MASK
    return first - (1 << 64) if first >> 63 else first


def rotate_left(number: int, bits: int) -> int:
    """Rotates 64 bits."""
    return (number << bits | number >> 64 - bits) & MASK


def mix_bits(h: int) -> int:
    """The finalizer of Murmur3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> 33) * factor & MASK
    return h ^ h >> 33
