"""The nodes' views of a Cassandra cluster, read over CQL.

`nodetool status` reports the same states, but each call starts a JVM (2 s of CPU time). The state UN means that a node
has joined and has its place in the ring (tables `system.local` and `system.peers`), and that the failure detector of
the queried node considers it alive. No table shows which nodes are considered alive, but if a read of a fully
replicated table at consistency ALL fails, the error `Unavailable` contains their number.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from loadstone.systems.base.system import SystemPlan, SystemsError
from loadstone.systems.cassandra.cql import Cql, RefusedError, UnreachableError
from loadstone.systems.cassandra.node import node_host, port_setting, ring_tokens, server_name

# The user that Cassandra creates at its first start with passwords enabled.
SUPERUSER = ("cassandra", "cassandra")
# Time limits for an answer: for a query that is soon repeated, as while a system starts, and for a single query. A
# login alone can take the whole `read_request_timeout` shortly after a node with a copy of the password has failed.
ANSWER_S = 2.0
SINGLE_ANSWER_S = 15.0
# A query for a nonexistent row of a table that is replicated to all nodes.
EVERYWHERE = (
    "SELECT status FROM system_distributed.view_build_status WHERE keyspace_name = 'none' AND view_name = 'none'"
)


@dataclass(frozen=True)
class RingView:
    """One node's view of the cluster."""

    joined: bool
    # The tokens that the node knows, including its own.
    tokens: frozenset[str]
    schema: str
    # The number of nodes that this node considers alive; None while this is unknown, such as right after a kill.
    alive: int | None


def login_credentials(plan: SystemPlan) -> tuple[str, str] | None:
    """The user and password to log in with, if the cluster requires them."""
    return SUPERUSER if plan.settings["authenticator"] == "PasswordAuthenticator" else None


def connect_node(plan: SystemPlan, node: int, timeout_s: float = ANSWER_S) -> Cql:
    """Connects to a node."""
    return Cql(node_host(plan, node), port_setting(plan, "port"), login_credentials(plan), timeout_s)


def read_view(cql: Cql, nodes: int) -> RingView:
    """Queries a node for its view. Raises UnreachableError and RefusedError."""
    (local,) = cql.run_query("SELECT bootstrapped, tokens FROM system.local")
    rows = [local, *cql.run_query("SELECT tokens FROM system.peers")]
    known = frozenset(str(token) for row in rows for token in list_of_cell(row["tokens"]))
    return RingView(local["bootstrapped"] == "COMPLETED", known, schema_version(cql), count_alive(cql, nodes))


def list_of_cell(value: object) -> list[object]:
    """The elements of a cell that contains a set; an empty set is null."""
    return value if isinstance(value, list) else []


def count_alive(cql: Cql, nodes: int) -> int | None:
    """The number of nodes that a node considers alive; None if it is unknown."""
    try:
        cql.run_query(EVERYWHERE, "ALL")
    except UnreachableError:
        return None
    except RefusedError as error:
        # For other errors, the number is unknown: a replica did not answer in time, or the table does not exist yet.
        return error.alive if error.name == "Unavailable" else None
    return nodes


def read_views(
    plan: SystemPlan, within_s: float = ANSWER_S
) -> tuple[Mapping[int, RingView], Mapping[int, SystemsError]]:
    """The view of each node that answers, and the reason for each node that does not."""
    nodes = range(1, plan.nodes + 1)
    # In parallel, because just after a node has failed, a query to a remaining node can take as long as its timeout.
    with ThreadPoolExecutor(plan.nodes) as pool:
        answers = dict(zip(nodes, pool.map(lambda node: try_view(plan, node, within_s), nodes), strict=True))
    views = {node: answer for node, answer in answers.items() if isinstance(answer, RingView)}
    return views, {node: answer for node, answer in answers.items() if isinstance(answer, SystemsError)}


def try_view(plan: SystemPlan, node: int, within_s: float) -> RingView | SystemsError:
    """A node's view, or the reason why there is none."""
    try:
        with connect_node(plan, node, within_s) as cql:
            return read_view(cql, plan.nodes)
    except (UnreachableError, RefusedError) as error:
        return error


def missing_readiness(plan: SystemPlan, nodes: list[int]) -> str | None:
    """The condition that these nodes do not meet yet; None if they are ready.

    They are ready if they answer, and if all answering nodes know the same ring and the same schema and consider as
    many nodes alive as there are answers. A dead node elsewhere does not prevent readiness.
    """
    views, silent = read_views(plan)
    for node in nodes:
        if node in silent:
            return str(silent[node].args[0])
    for node, node_view in views.items():
        if not node_view.joined:
            return f"{server_name(node)} has not joined the ring"
        if node_view.tokens != frozenset(ring_tokens(plan)):
            return f"{server_name(node)} knows {len(node_view.tokens)} of {plan.nodes} places in the ring"
        if node_view.alive != len(views):
            return f"{server_name(node)} does not reach all of the {len(views)} nodes that answer"
    return None if len({view.schema for view in views.values()}) == 1 else "the nodes do not agree on the schema"


def nodes_up(plan: SystemPlan, views: Mapping[int, RingView]) -> int:
    """The minimum number of nodes that an answering node considers alive, at most the number of answering nodes."""
    counts = [len(views) if view.alive is None else min(view.alive, len(views)) for view in views.values()]
    return min(counts, default=0)


def schema_version(cql: Cql) -> str:
    """The version of a node's schema."""
    (row,) = cql.run_query("SELECT schema_version FROM system.local")
    return str(row["schema_version"])


def await_schema_agreement(plan: SystemPlan, within_s: float) -> None:
    """Waits until all nodes that answer in time have the same schema. Raises SystemsError after `within_s`.

    A busy node may take seconds to answer. Without the wait, its first requests could name a table unknown to it.
    """
    deadline = time.monotonic() + within_s
    with ExitStack() as stack:
        nodes = []
        for node in range(1, plan.nodes + 1):
            try:
                nodes.append(stack.enter_context(connect_node(plan, node, within_s)))
            except UnreachableError:
                # A node that is down receives the schema from the other nodes after its restart.
                continue
        while len({schema_version(cql) for cql in nodes}) > 1:
            if time.monotonic() > deadline:
                raise SystemsError("the nodes of cassandra do not agree on the schema", "see their logs")
            time.sleep(0.1)
