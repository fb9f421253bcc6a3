"""What a trial records of its guarantees: the servers' own answers, and where there is none, why not.

A networked store asks on a connection like those of its clients, so its answer comes first. Where it says `unknown` (a
binding of the store `jvm`, a server that refuses the question), the answer that servers of the lab gave the lab counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.results.trial_result import Scalar

# Stands instead of `durability`: the reason why it could not be asked.
UNKNOWN = "durability_unknown"
ANSWERS = ("durability", "how", UNKNOWN)
# As `replication` counts copies: those of a server without replicas.
ALONE = "none"


def kept(durability: str, how: str, asked: Mapping[str, Scalar], told: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Facts of durability and copies. `asked` are the store's facts, `told` those of servers that the lab started."""
    found: dict[str, Scalar] = {}
    if asked.get("replication") == ALONE:
        found["replication"] = 1
    if durability != "unknown":
        return {**found, "durability": durability, "how": how}
    if "durability" in told:
        return {**found, **{name: told[name] for name in ANSWERS if name in told}}
    return {**found, UNKNOWN: told.get(UNKNOWN, how), "how": how}
