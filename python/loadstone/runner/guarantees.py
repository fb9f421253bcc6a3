"""Determines the guarantees that a trial records, or the reason why they are unknown.

A networked store queries the server on a connection with the clients' settings, so the store's answer takes precedence.
If the answer is `unknown` (a binding of the store `jvm`, a server that refuses the query), the lab's own query is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.results.trial_result import Scalar

# The fact that is recorded instead of `durability`: the reason why the durability is unknown.
UNKNOWN = "durability_unknown"
ANSWERS = ("durability", "how", UNKNOWN)
# The value of the store's fact `replication` for a server without replicas, which is recorded as 1 copy.
NO_REPLICAS = "none"


def guarantee_facts(
    durability: str, how: str, of_store: Mapping[str, Scalar], of_servers: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Facts about durability and replication, from the store and from the servers that the lab started."""
    replication: dict[str, Scalar] = {"replication": 1} if of_store.get("replication") == NO_REPLICAS else {}
    if durability != "unknown":
        return {**replication, "durability": durability, "how": how}
    if "durability" in of_servers:
        return {**replication, **{name: of_servers[name] for name in ANSWERS if name in of_servers}}
    return {**replication, UNKNOWN: of_servers.get(UNKNOWN, how), "how": how}
