"""What a trial records of its guarantees: the servers' own answers, and where there is none, why not.

A networked store asks on a connection like those of its clients, so its answer comes first. Where it was told nothing
(a binding of the store `jvm`, a server that refuses the question), what servers of the lab's told the lab counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.results.trial_result import Scalar

# Stands instead of `durability`: the reason why it could not be asked.
UNKNOWN = "durability_unknown"
ANSWERS = ("durability", "how", UNKNOWN)
# As `replication` counts copies: those of a server without replicas.
ALONE = "none"


def kept(
    store: str, durability: str, how: str, asked: Mapping[str, Scalar], told: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Facts of durability and copies. `asked` are the store's facts, `told` those of servers that the lab started."""
    found: dict[str, Scalar] = {}
    if asked.get("replication") == ALONE:
        found["replication"] = 1
    if was_told(store, asked):
        return {**found, "durability": durability, "how": how}
    if "durability" in told:
        return {**found, **{name: told[name] for name in ANSWERS if name in told}}
    return {**found, UNKNOWN: told.get(UNKNOWN, how), "how": how}


def was_told(store: str, asked: Mapping[str, Scalar]) -> bool:
    """Whether a store's durability is an answer: one that was told nothing claims the least, `none`."""
    if store == "jvm":
        return False
    if store == "redis":
        return asked.get("appendonly") != "unknown"
    if store == "cassandra":
        return "commitlog_sync" in asked or asked.get("durable_writes") == "no"
    return True
