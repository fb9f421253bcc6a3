"""The nodes' views of a Cassandra cluster, read over CQL.

`nodetool status` would report the same, but costs a Java start (2 s of a processor) per call. Its state UN
means: the node has joined and has its place in the ring (tables `system.local` and `system.peers`), and the
failure detector of the queried node considers it alive. No table shows the latter, but a read at consistency ALL
of a table that is on all nodes does: the error `Unavailable` contains the number of live replicas.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from loadstone.systems.base.system import Plan, SystemsError
from loadstone.systems.cassandra.cql import Cql, RefusedError, UnreachableError
from loadstone.systems.cassandra.files import host, name, port, tokens

# The user that Cassandra creates at its first start with enabled passwords.
SUPERUSER = ("cassandra", "cassandra")
# Time limits of an answer: while a system starts, when another query follows soon, and for a single query. A
# login alone can take all of `read_request_timeout` while a node is freshly dead that has a copy of the password.
LOOK_S = 2.0
ONLY_LOOK_S = 15.0
# A query of a table that is on all nodes, for a row that does not exist.
EVERYWHERE = (
    "SELECT status FROM system_distributed.view_build_status WHERE keyspace_name = 'none' AND view_name = 'none'"
)


@dataclass(frozen=True)
class View:
    """One node's view of the cluster."""

    joined: bool
    # The tokens that the node knows, including its own.
    tokens: frozenset[str]
    schema: str
    # The number of nodes that it considers alive; None while this is unknown, as right after a kill.
    alive: int | None


def credentials(plan: Plan) -> tuple[str, str] | None:
    """The user and password to log in with, if the cluster requires them."""
    return SUPERUSER if plan.settings["authenticator"] == "PasswordAuthenticator" else None


def connect(plan: Plan, node: int, timeout_s: float = LOOK_S) -> Cql:
    """A connection to a node."""
    return Cql(host(plan, node), port(plan, "port"), credentials(plan), timeout_s)


def view(cql: Cql, nodes: int) -> View:
    """Queries a node. Raises UnreachableError and RefusedError."""
    (local,) = cql.query("SELECT bootstrapped, tokens FROM system.local")
    rows = [local, *cql.query("SELECT tokens FROM system.peers")]
    known = frozenset(str(token) for row in rows for token in listed(row["tokens"]))
    return View(local["bootstrapped"] == "COMPLETED", known, schema(cql), alive(cql, nodes))


def listed(value: object) -> list[object]:
    """A cell that holds a set; an empty set is null."""
    return value if isinstance(value, list) else []


def alive(cql: Cql, nodes: int) -> int | None:
    """The number of nodes that a node considers alive."""
    try:
        cql.query(EVERYWHERE, "ALL")
    except UnreachableError:
        return None
    except RefusedError as error:
        # Other errors: a replica that did not answer in time, or a cluster without the table so far.
        return error.alive if error.name == "Unavailable" else None
    return nodes


def views(plan: Plan, within_s: float = LOOK_S) -> tuple[Mapping[int, View], Mapping[int, SystemsError]]:
    """Each node's view, and the reasons of nodes without an answer."""
    nodes = range(1, plan.nodes + 1)
    # In parallel: right after a node's death, each query of the remaining nodes takes up to its timeout.
    with ThreadPoolExecutor(plan.nodes) as pool:
        answers = dict(zip(nodes, pool.map(lambda node: look(plan, node, within_s), nodes), strict=True))
    found = {node: answer for node, answer in answers.items() if isinstance(answer, View)}
    return found, {node: answer for node, answer in answers.items() if isinstance(answer, SystemsError)}


def look(plan: Plan, node: int, within_s: float) -> View | SystemsError:
    """A node's view, or the reason why there is none."""
    try:
        with connect(plan, node, within_s) as cql:
            return view(cql, plan.nodes)
    except (UnreachableError, RefusedError) as error:
        return error


def missing(plan: Plan, wanted: list[int]) -> str | None:
    """The condition that these nodes do not meet yet; None if they are ready.

    They answer, all answering nodes know the same ring and the same schema, and consider as many nodes alive as
    answer: a dead node that is not among these does not keep the others from being ready.
    """
    found, silent = views(plan)
    for node in wanted:
        if node in silent:
            return str(silent[node].args[0])
    for node, node_view in found.items():
        if not node_view.joined:
            return f"{name(node)} has not joined the ring"
        if node_view.tokens != frozenset(tokens(plan)):
            return f"{name(node)} knows {len(node_view.tokens)} of {plan.nodes} places in the ring"
        if node_view.alive != len(found):
            return f"{name(node)} does not reach all of the {len(found)} nodes that answer"
    return None if len({each.schema for each in found.values()}) == 1 else "the nodes do not agree on the schema"


def nodes_up(plan: Plan, found: Mapping[int, View]) -> int:
    """The number of nodes that answer, without nodes that another of them does not reach."""
    counts = [len(found) if each.alive is None else min(each.alive, len(found)) for each in found.values()]
    return min(counts, default=0)


def schema(cql: Cql) -> str:
    """The version of the schema that a node has."""
    (row,) = cql.query("SELECT schema_version FROM system.local")
    return str(row["schema_version"])


def agree(plan: Plan, within_s: float) -> None:
    """Waits until all nodes that answer have the same schema. Raises SystemsError if they do not in time."""
    deadline = time.monotonic() + within_s
    with ExitStack() as stack:
        nodes = []
        for node in range(1, plan.nodes + 1):
            try:
                nodes.append(stack.enter_context(connect(plan, node)))
            except UnreachableError:
                # A node that is down takes the schema from the other nodes when it is back.
                continue
        while len({schema(cql) for cql in nodes}) > 1:
            if time.monotonic() > deadline:
                raise SystemsError("the nodes of cassandra do not agree on the schema", "see their logs")
            time.sleep(0.1)
