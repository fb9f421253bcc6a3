"""The engine distributes connections and requests over the shards of a scripted ScyllaDB, and prepares statements on a
scripted Cassandra."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadstone.engine.events import Ready, Summary
from loadstone.engine.trial import Trial, follow_trials
from loadstone.systems.base.system import SystemPlan
from loadstone.systems.cassandra.cql import RefusedError
from loadstone.systems.cassandra.ring import ANSWER_S
from loadstone.systems.cassandra.system import Cassandra
from loadstone.systems.cassandra.tables import create_table
from scripted_cassandra import INVALID, Answer, Execution, FakeCassandra, error, string
from scripted_scylla import RATE_LIMIT, FakeScylla, token
from stress_support import Stress, count_retries

WRITE = "write n=400 no-warmup -rate threads=4"


def trial_events(
    program: Path, server: FakeCassandra, line: str, node: str = "127.0.0.1", **properties: str
) -> tuple[Ready, Summary]:
    """Runs a command line as a trial, with these properties of the store."""
    address = ["-node", *node.split(), "-port", f"native={server.port}"]
    command = [str(program), "cassandra-stress", *line.split(), *address]
    printed = subprocess.run([*command, "--print-spec"], check=True, capture_output=True, text=True).stdout
    spec = {**json.loads(printed.splitlines()[-1]), "wait_for_start": False}
    spec["store"]["properties"] |= {f"cassandra.{name}": value for name, value in properties.items()}
    with Trial(spec) as trial:
        events = [event for _, event in follow_trials(trial)]
    (ready,) = (event for event in events if isinstance(event, Ready))
    (summary,) = (event for event in events if isinstance(event, Summary))
    return ready, summary


def test_scripted_tokens_are_cassandras() -> None:
    # Computed by Cassandra 5.0.9.
    assert token(b"user1") == -1_727_604_350_198_519_072
    assert token(b"12345678") == 4_272_337_174_398_058_908
    assert token(b"123456789") == 4_360_720_697_772_133_540


@pytest.mark.parametrize("option", ["connectionsPerHost", "connectionsPerShard"])
@pytest.mark.parametrize("count", [1, 6, 7])
def test_connections_are_counted_over_all_executors(stress: Stress, option: str, count: int) -> None:
    with FakeCassandra() as server:
        # With 300 clients, a host with several processors has two executors.
        line = f"write n=600 no-warmup -rate threads=300 -mode native cql3 {option}={count}"
        stress(server, line).check_end()
    assert len(server.executing) == count


@pytest.mark.parametrize(("option", "per_shard"), [("connectionsPerHost=9", 2), ("connectionsPerShard=3", 3)])
def test_connections_to_a_host_are_divided_among_shards(stress: Stress, option: str, per_shard: int) -> None:
    with FakeScylla() as server:
        stress(server, f"{WRITE} -mode native cql3 {option}").check_end()
    assert set(Counter(server.opened[True]).values()) == {per_shard}


@pytest.mark.parametrize("whitelist", ["", "whitelist "])
def test_whitelist_limits_connections_to_contact_points(program: Path, whitelist: str) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(FakeCassandra())
        second = FakeCassandra()
        second.address, second.port = "127.0.0.2", first.port
        stack.enter_context(second)
        first.peers = ["127.0.0.2"]
        ready, summary = trial_events(program, first, WRITE, node=f"{whitelist}127.0.0.1")
    assert (summary.operations, summary.failures) == (400, 0)
    assert ready.facts["nodes"] == ("1" if whitelist else "2")
    assert bool(second.startups) == (not whitelist)


def test_requests_reach_their_keys_shard(stress: Stress) -> None:
    with FakeScylla() as server:
        stress(server, WRITE).check_end()
    assert len(server.arrivals) == 400
    assert server.find_misplaced() == []
    assert len(server.arrivals_by_shard()) == server.shards
    # Each executor has one connection to each shard.
    connections = Counter(server.opened[True])
    assert set(connections) == set(range(server.shards))
    assert len(set(connections.values())) == 1


@pytest.mark.parametrize("state", ["absent", "closed", "translated"])
def test_shards_are_found_without_shard_port(stress: Stress, state: str) -> None:
    # Most connections lead to shards that already have a connection.
    server = FakeScylla(assign=lambda number: (0, 0, 1, 1, 1, 2, 0, 3)[number % 8])
    server.shard_port_state = state
    with server:
        stress(server, WRITE).check_end()
    assert server.find_misplaced() == []
    assert len(server.arrivals_by_shard()) == server.shards


def test_the_search_for_a_shard_is_limited(program: Path) -> None:
    server = FakeScylla(assign=lambda _: 0)
    server.shard_port_state = "translated"
    with server:
        _, summary = trial_events(program, server, WRITE)
    assert (summary.operations, summary.failures) == (400, 0)
    assert server.arrivals_by_shard() == {0: 400}
    # 8 consecutive misses for each shard, for each of at most 4 executors, and the attempts in flight at the limit.
    assert len(server.opened[False]) + len(server.opened[True]) <= 4 * (8 + 3) * server.shards
    events = {event.event for event in summary.server_events}
    assert {f"no connection to shard {shard}" for shard in (1, 2, 3)} <= events


@pytest.mark.parametrize("answer", ["reset", "half"])
def test_lost_connections_return_to_their_shard(stress: Stress, answer: str) -> None:
    with FakeScylla() as server:

        def script(execution: Execution) -> Answer:
            return answer if execution.number in (50, 100, 150) else None

        server.script = script
        outcome = stress(server, f"{WRITE} throttle=200/s -errors retries=200")
    outcome.check_end()
    assert count_retries(outcome) > 0
    assert len(server.rows) == 400
    lost = Counter(server.arrivals[number][1] for number in (50, 100, 150))
    connections = Counter(server.opened[True])
    initial = {connections[shard] - lost[shard] for shard in range(server.shards)}
    assert len(initial) == 1, (connections, lost)
    # Until a lost connection is open again, another shard receives the requests.
    for misplaced in server.find_misplaced():
        assert 50 < server.arrivals.index(misplaced) < len(server.arrivals) - 50


def test_each_node_has_its_own_shards(program: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(FakeScylla(shards=3))
        second = FakeScylla(shards=2)
        second.address, second.port = "127.0.0.2", first.port
        stack.enter_context(second)
        first.peers = ["127.0.0.2"]
        ready, summary = trial_events(program, first, WRITE)
    assert (ready.facts["shards"], ready.facts["connections_per_executor"]) == ("3, 2", "5")
    assert ready.facts["connections"] == "1 to each shard, of each executor"
    assert summary.failures == 0
    assert set(first.opened[True]) == {0, 1, 2}
    assert set(second.opened[True]) == {0, 1}
    assert first.find_misplaced() + second.find_misplaced() == []


def test_rate_limits_are_reported_by_name(stress: Stress) -> None:
    answers = {3: b"\1\1", 6: b"\1\0"}

    def script(execution: Execution) -> Answer:
        fields = answers.get(execution.number)
        return error(RATE_LIMIT, "too many writes", fields) if fields else None

    with FakeScylla(script) as server:
        outcome = stress(server, "write n=10 no-warmup -errors ignore retries=0 -rate threads=1")
    outcome.check_end()
    assert outcome.totals("errors") == {"WRITE": 2, "total": 2}
    assert "RateLimitError: too many writes" in outcome.stdout + outcome.stderr
    extension = string("SCYLLA_RATE_LIMIT_ERROR") + string("")
    # The connections that execute statements enable the error.
    assert sum(extension in body for body in server.startups) >= len(server.opened[True])


def test_cassandra_gets_no_extensions(stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, WRITE).check_end()
    assert not any(b"SCYLLA" in body for body in server.startups)


@pytest.mark.parametrize("reason", ["SimpleStrategy doesn't support tablet replication", "no permission"])
def test_bindings_table_replaces_refused_strategy(reason: str) -> None:
    settings = {setting.name: setting.default for setting in Cassandra.settings}
    with FakeCassandra() as server:
        server.refuse = lambda text: error(INVALID, reason) if "SimpleStrategy" in text else None
        plan = SystemPlan(1, settings | {"port": str(server.port)})
        if "permission" in reason:
            with pytest.raises(RefusedError, match=reason):
                create_table(plan, "usertable", {}, replace=True)
        else:
            assert create_table(plan, "usertable", {}, replace=True)
    created = [text.partition("'class': '")[2].partition("'")[0] for text in server.queries if "replication" in text]
    assert created == ["SimpleStrategy", "NetworkTopologyStrategy"][: 1 if "permission" in reason else 2]


def test_slow_node_delays_the_new_table() -> None:
    settings = {setting.name: setting.default for setting in Cassandra.settings}
    with FakeCassandra() as server:
        # The first answer about the schema takes longer than ANSWER_S.
        delays = [ANSWER_S + 0.2]
        server.refuse = lambda text: time.sleep(delays.pop()) if "schema_version" in text and delays else None
        assert create_table(SystemPlan(1, settings | {"port": str(server.port)}), "usertable", {}, replace=True)
    assert not delays


def test_node_that_never_answers_gets_no_requests(program: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(FakeCassandra())
        second = FakeCassandra()
        second.address, second.port, second.is_mute = "127.0.0.2", first.port, True
        stack.enter_context(second)
        first.peers = ["127.0.0.2"]
        _, summary = trial_events(program, first, WRITE, connecttimeoutmillis="200")
    assert (summary.operations, summary.failures) == (400, 0)
    assert first.kinds == {"WRITE": 400}
    assert not second.executions


def test_usability_of_nodes_is_recorded(program: Path) -> None:
    with FakeCassandra(lambda execution: "close" if execution.number == 200 else None) as server:
        _, summary = trial_events(program, server, "write n=400 no-warmup -errors retries=200 -rate threads=1")
        events = [event for event in summary.server_events if "usable" in event.event]
    assert [event.event for event in events] == ["unusable", "usable"]
    assert {event.server for event in events} == {f"127.0.0.1:{server.port}"}


STATEMENTS = 150


def test_prepares_are_pipelined_on_every_connection(stress: Stress, tmp_path: Path) -> None:
    queries = "".join(
        f'  q{at}: {{cql: "SELECT * FROM standard1 WHERE key = ? LIMIT {at}", fields: samerow}}\n'
        for at in range(1, STATEMENTS + 1)
    )
    profile = tmp_path / "profile.yaml"
    profile.write_text(
        "keyspace: keyspace1\ntable: standard1\ncolumnspec:\n  - {name: key, size: fixed(10)}\n"
        f"insert: {{partitions: fixed(1)}}\nqueries:\n{queries}"
    )
    operations = ",".join(f"q{at}=1" for at in range(1, STATEMENTS + 1))
    with FakeCassandra() as server:
        server.prepare_delay_s = 0.05
        line = f"user profile={profile} ops(insert=1,{operations}) n=200 no-warmup -rate threads=2 -errors ignore"
        outcome = stress(server, line)
    assert outcome.code == 0, outcome.stderr
    counts = Counter(server.prepares)
    assert sum("LIMIT" in text for text in counts) == STATEMENTS
    # Each statement is prepared for the description and on one connection of each executor.
    assert len({count for text, count in counts.items() if "LIMIT" in text}) == 1
    # 64 requests are in flight, so 150 statements take 3 round trips instead of 150.
    assert server.preparing_max == 64
