"""Stores that connect to a server, tested on a real server that is killed, paused and restarted.

For each store in `STORES` (networked_support.py), the test starts the store's server and runs the cases of
`crates/stores/tests/networked` on this server. Then the engine's binary runs while the server is killed, paused and
restarted, has another address, lacks a table, or requires another password. Every operation must end with a status that
states the reason, and no run may hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from conftest import ROOT, CommandResult, Engine
from loadstone.engine.events import Event, Interval
from loadstone.systems.base import outside_directories
from loadstone.systems.postgres import cluster, system
from networked_support import CLIENTS, GONE, PAUSE_SECONDS, RECORDS, STORES, Networked, Served
from scripted_redis import array
from scripted_relay import Fault, Relay
from systems_support import up
from trial_support import Start, counts, single_summary, work
from window_support import CLIENTS as RELAYED_CLIENTS
from window_support import DUE, Relayed, check_refusals, percentiles, run_relayed, sums


@pytest.fixture(scope="module", params=[pytest.param(store, id=store.name) for store in STORES])
def store_server(request: pytest.FixtureRequest) -> Iterator[Served]:
    store: Networked = request.param
    with up(store.system, store.nodes, **store.settings) as system:
        result = Served(store, system)
        result.reset_table()
        yield result


def leave_to_soak(*names: str) -> pytest.MarkDecorator:
    """Tests all stores; the named stores, whose driver or fault other tests cover, only in `make soak`."""
    stores = [pytest.param(store, id=store.name, marks=[pytest.mark.soak] * (store.name in names)) for store in STORES]
    return pytest.mark.parametrize("store_server", stores, indirect=True)


def wait_until_measuring(process: subprocess.Popen[str]) -> None:
    """Waits until the run measures."""
    assert process.stderr
    output = []
    for line in process.stderr:
        output.append(line)
        if line == "Starting test.\n":
            return
    raise AssertionError(f"it ended before it began:\n{''.join(output)}")


def wait_for_result(process: subprocess.Popen[str]) -> CommandResult:
    """Waits for a started run: none may hang."""
    out, err = process.communicate(timeout=60)
    assert "panicked" not in err, err
    return CommandResult(process.returncode, out, err, 0)


def statuses(result: CommandResult) -> Counter[str]:
    """The statuses of reads and updates; each operation's statuses must add up to its histograms."""
    counts: Counter[str] = Counter()
    for metric in ("READ", "UPDATE"):
        returns = result.returns(metric)
        counts.update(returns)
        assert result.value(metric, "Operations") == returns.get("OK", 0)
        failed = sum(returns.values()) - returns.get("OK", 0)
        if failed:
            assert result.value(f"{metric}-FAILED", "Operations") == failed
    return counts


def check_refusal(result: CommandResult, *arguments: str) -> None:
    """Checks that the run did not begin, stated the reason on one line, and gave a hint on another."""
    assert result.code == 1, result.err
    assert "Starting test." not in result.err
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.err
    for word in arguments:
        assert word in errors[0], result.err
    assert re.fullmatch(r"hint: \S.*", result.err.splitlines()[-1]), f"a hint is missing: {result.err}"


def test_the_cases_of_every_networked_store(store_server: Served) -> None:
    filter_ = f"{store_server.store.name}::"
    variables = {store_server.store.variable: " ".join(store_server.arguments())}
    done = subprocess.run(
        ["cargo", "test", "--locked", "--workspace", "--test", "networked", "--", "--ignored", filter_],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    passed = re.search(r"test result: ok\. (\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 15, done.stdout


def test_what_was_loaded_is_read_and_right(store_server: Served, engine: Engine) -> None:
    store_server.load(engine)
    line = f"run {store_server.store.name} -P workloads/workloadb dataintegrity=true"
    line += f" recordcount={RECORDS} operationcount=2000"
    for more in ("", "readallfields=false", "readproportion=0.5 readmodifywriteproportion=0.5"):
        result = engine(f"{line} -threads {CLIENTS} {more}", *store_server.arguments())
        assert result.returns("VERIFY")["OK"] == sum(result.returns("READ").values()) > 0
        assert sum(statuses(result).values()) == statuses(result)["OK"]
    result = engine(
        f"run {store_server.store.name} -P workloads/workloade",
        f"recordcount={RECORDS}",
        "operationcount=200",
        "insertproportion=0",
        "scanproportion=1",
        *store_server.arguments(),
    )
    assert result.returns("SCAN") == {"OK": 200}


@leave_to_soak("postgrenosql")
def test_many_clients(store_server: Served, engine: Engine) -> None:
    clients = store_server.store.many_clients
    store_server.load(engine)
    line = f"run {store_server.store.name} -P workloads/workloada recordcount={RECORDS} operationcount={20 * clients}"
    result = engine(f"{line} -threads {clients} dataintegrity=true", *store_server.arguments())
    assert statuses(result) == {"OK": 20 * clients}


@leave_to_soak("postgrenosql")
def test_killed_server_is_named_without_ending_the_run(
    store_server: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    store_server.load(engine)
    process = engine.start(*store_server.run(4))
    running.append(process)
    wait_until_measuring(process)
    time.sleep(1)
    store_server.up.running.kill()
    result = wait_for_result(process)
    assert result.code == 1, result.err
    assert "got no answer" not in result.err, "every operation ends with a status"
    counts = statuses(result)
    assert counts["OK"] > 0
    assert sum(counts[status] for status in store_server.store.killed) > 0
    assert {*counts} <= {"OK", *GONE}
    arguments = rf"warning: \d+ x (READ|UPDATE) returned ({'|'.join(store_server.store.killed)}); the first: \S"
    assert re.search(arguments, result.err), result.err
    # No store has a time limit beyond 10 s. HBase's client may exceed its limit; its operations are interrupted 2 s
    # after the limit.
    gone = [metric for metric in result.metrics() if metric.endswith("-FAILED")]
    assert max(result.value(metric, "MaxLatency(us)") for metric in gone) < 25e6
    # The remainder of the run was spent on requests, not on spinning.
    assert sum(counts.values()) - counts["OK"] < 4 * CLIENTS * 30


@leave_to_soak("postgrenosql", "hbase")
def test_operations_succeed_after_a_restart_and_are_counted(store_server: Served, engine: Engine, start: Start) -> None:
    store_server.load(engine)
    with start(
        store={"name": store_server.store.name, "properties": store_server.properties},
        work=work(records=RECORDS, insert_count=RECORDS),
        clients=CLIENTS,
        until={"seconds": 600},
        interval_ms=250,
    ) as trial:
        events: list[Event] = [trial.next()]
        while count_successes(events) < 100:
            events.append(trial.next())
        store_server.up.running.kill()
        while count_failures(events) < CLIENTS:
            events.append(trial.next())
        store_server.up.running.up(store_server.store.nodes, store_server.up.running.plan.settings)
        until = len(events)
        while count_successes(events[until:]) < 1000:
            events.append(trial.next())
        # Every client has reconnected.
        until = len(events)
        while len(events) < until + 8:
            events.append(trial.next())
        last = [event for event in events if isinstance(event, Interval)][-4:]
        trial.say('"stop"')
        _, rest = trial.read_remaining()
    summary = single_summary(rest)
    assert {status for _, status in counts(summary.outcomes)} <= {"OK", *GONE}
    assert sum(interval.ended for interval in last) == sum(interval.completed for interval in last) > 0


def count_successes(events: list[Event]) -> int:
    """Successful operations in these intervals."""
    return sum(event.completed for event in events if isinstance(event, Interval))


def count_failures(events: list[Event]) -> int:
    """Failed operations in these intervals."""
    return sum(event.ended - event.completed for event in events if isinstance(event, Interval))


def run_through_pause(
    store_server: Served, engine: Engine, running: list[subprocess.Popen[str]], timeout_ms: int
) -> tuple[CommandResult, float]:
    """Pauses the server during a run; returns the result and the maximum latency of the run, µs."""
    store_server.load(engine)
    process = engine.start(*store_server.run(8, f"{store_server.store.timeout}={timeout_ms}"))
    running.append(process)
    wait_until_measuring(process)
    time.sleep(1)
    store_server.up.running.pause()
    try:
        time.sleep(PAUSE_SECONDS)
    finally:
        store_server.up.running.resume()
    result = wait_for_result(process)
    # A late answer must not go to another request, which would be UNEXPECTED_STATE. (ERROR: a read returned nothing.)
    assert {*result.returns("VERIFY")} <= {"OK", "ERROR"}
    return result, max(result.value(metric, "MaxLatency(us)") for metric in ("READ", "UPDATE"))


@leave_to_soak("postgrenosql", "cassandra", "hbase")
def test_pause_within_the_timeout_only_delays(
    store_server: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    result, slowest_us = run_through_pause(store_server, engine, running, 30_000)
    assert {*statuses(result)} == {"OK"}
    assert result.code == 0, result.err
    assert slowest_us > 0.9 * PAUSE_SECONDS * 1e6


@leave_to_soak("postgrenosql")
def test_pause_beyond_the_timeout_is_a_failure(
    store_server: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    result, slowest_us = run_through_pause(store_server, engine, running, 1_500)
    counts = statuses(result)
    assert counts["TIMEOUT"] >= CLIENTS
    assert {*counts} <= {"OK", *GONE}
    assert result.code == 1
    assert re.search(rf"returned TIMEOUT; the first: .*{store_server.store.late}", result.err), result.err
    assert slowest_us < 0.9 * PAUSE_SECONDS * 1e6


def test_wrong_addresses_are_refused(store_server: Served, engine: Engine) -> None:
    for host, port in (("no-such-host.invalid", store_server.address[1]), (store_server.address[0], "1")):
        command = [f"{name}={value}" for name, value in store_server.elsewhere(host, port).items()]
        for verb in ("load", "run"):
            line = f"{verb} {store_server.store.name} -P workloads/workloada"
            check_refusal(engine.run(line, *command), host, port)


def test_invalid_or_useless_credentials_are_refused(store_server: Served, engine: Engine) -> None:
    store_server.reset_table()
    line = f"run {store_server.store.name} -P workloads/workloada"
    if store_server.store.password is None:
        result = engine.run(line, *store_server.arguments(), "principal=ycsb@EXAMPLE.COM", "keytab=/etc/ycsb.keytab")
        assert result.code == 2
        assert result.messages("error: ") == ["Kerberos is not supported yet (principal, keytab)"]
        return
    result = engine.run(line, *store_server.arguments(), f"{store_server.store.password}=wrong")
    check_refusal(result, ":".join(store_server.address))
    assert store_server.store.password in result.err
    if store_server.store.name == "redis":
        result = engine.run(line, *[word for word in store_server.arguments() if not word.startswith("redis.password")])
        check_refusal(result, ":".join(store_server.address), "NOAUTH")


def test_missing_table_message_shows_how_to_create_it(store_server: Served, engine: Engine) -> None:
    if store_server.store.table is None:
        # The name of a table has no effect: records loaded under one table name are found under every table name.
        store_server.load(engine)
        line = f"run {store_server.store.name} -P workloads/workloadc recordcount={RECORDS} operationcount=50"
        assert engine(line, "table=nosuchtable", *store_server.arguments()).returns("READ") == {"OK": 50}
        return
    store_server.reset_table()
    for verb in ("load", "run"):
        result = engine.run(
            f"{verb} {store_server.store.name} -P workloads/workloada table=nosuchtable", *store_server.arguments()
        )
        check_refusal(result, "nosuchtable", ":".join(store_server.address))
        assert re.search(store_server.store.makes_table, result.err), result.err


def test_run_on_an_empty_table_reads_no_records(store_server: Served, engine: Engine) -> None:
    store_server.reset_table()
    result = engine.run(
        f"run {store_server.store.name} -P workloads/workloadc recordcount=10 operationcount=20",
        *store_server.arguments(),
    )
    assert result.returns("READ") == {"NOT_FOUND": 20}
    assert result.code == 1


def test_the_promise_is_the_servers_own(store_server: Served, engine: Engine) -> None:
    store_server.reset_table()
    result = engine.run(
        f"run {store_server.store.name} -P workloads/workloadc recordcount=10 operationcount=20",
        *store_server.arguments(),
    )
    (store,) = result.messages("Store: ")
    assert re.search(r"version [A-Z]\w+ \d", store), store
    assert f"address {':'.join(store_server.address)}" in store
    assert len(result.messages("Writes survive: ")) == 1


# The window, through a relay whose faults follow a script.

# The store reaches Cassandra's single node at its configured address, so it does not bypass the relay. Excluded:
# `postgrenosql`, which shares its connections with `postgres`, and HBase, whose client gets the addresses of region
# servers from ZooKeeper.
BEHIND_RELAY = ("redis", "postgres", "cassandra")


@dataclass(frozen=True)
class Behind:
    """A store with its records, whose server is reached through a relay."""

    store_server: Served
    program: Path

    def run(
        self,
        *faults: Fault,
        reset_at: float | None = None,
        timeout_ms: int | None = None,
        clients: int = RELAYED_CLIENTS,
    ) -> Relayed:
        """A trial with these faults from the start of its window."""
        _, port = self.store_server.address
        with Relay(int(port), *faults) as relay:
            result = self.store_server.elsewhere("127.0.0.1", str(relay.port))
            if timeout_ms is not None:
                result[self.store_server.store.timeout] = str(timeout_ms)
            store = {"name": self.store_server.store.name, "properties": result}
            return run_relayed(self.program, relay, store, RECORDS, reset_at, clients)


@pytest.fixture(scope="module")
def behind(store_server: Served, module_engine: Engine, program: Path) -> Behind:
    if store_server.store.name not in BEHIND_RELAY:
        pytest.skip("no relay for this store")
    store_server.load(module_engine)
    return Behind(store_server, program)


def test_relayed_final_stall_is_in_the_tail(behind: Behind) -> None:
    run = behind.run(Fault("stall", 1.0, 2.1))
    least = run.check()
    # Operations that became due within the first tenth of the silence waited for at least a second.
    assert sum(bound >= 1.0e9 for bound in least) > DUE // 100
    p99 = percentiles(run.summary, 0.99)[0]
    assert p99.value >= 1.0e9
    assert p99.bound in (None, "at_least")
    assert run.statuses <= {"OK"}


def test_behind_a_relay_late_answers_are_late(behind: Behind) -> None:
    run = behind.run(Fault("late", seconds=0.2))
    assert min(run.check()) >= 0.19e9
    assert run.statuses <= {"OK"}
    # Eleven answers fit between the start and the cut-off.
    assert run.summary.unsent >= DUE - 12 * RELAYED_CLIENTS


def test_relayed_connection_losses_are_failures_and_reconnected(behind: Behind) -> None:
    run = behind.run(Fault("reset", 0.3, every=25), reset_at=1.0)
    run.check()
    assert run.statuses <= {"OK", "SERVICE_UNAVAILABLE"}
    # All clients of Cassandra share a connection, so a reset fails one operation of each client.
    failures_per_reset = RELAYED_CLIENTS if behind.store_server.store.name == "cassandra" else 1
    summary, connecting = run.summary, run.summary.connection_attempts
    assert connecting is not None
    assert summary.failures - summary.unreached <= run.relay.resets * failures_per_reset, summary.words
    # A reset during a handshake fails the operation that waited for it. On a busy host, two consecutive handshakes may
    # be reset: until the next attempt, operations fail unsent.
    assert summary.unreached <= connecting.failed * failures_per_reset or connecting.failed > 1, summary.words
    assert run.is_broken_failure


@pytest.mark.parametrize("kind", ["half_close", "half_stall"])
def test_behind_a_relay_half_an_answer_is_none(behind: Behind, kind: Literal["half_close", "half_stall"]) -> None:
    silent = kind == "half_stall"
    run = behind.run(Fault(kind, 0.5, every=20), timeout_ms=500 if silent else None)
    run.check()
    assert run.statuses <= {"OK", "SERVICE_UNAVAILABLE"} | ({"TIMEOUT"} if silent else set())
    assert run.is_broken_failure


@pytest.mark.parametrize("many", [False, True], ids=["4 clients", "many clients"])
def test_relay_refusals_fail_due_operations(behind: Behind, many: bool) -> None:
    clients = min(256, behind.store_server.store.many_clients) if many else 4
    run = behind.run(Fault("gone", 0.5, 1.0), clients=clients)
    sums(run.summary, run.intervals, DUE)
    assert run.statuses <= {"OK", "SERVICE_UNAVAILABLE"}
    check_refusals(run.summary, run.intervals, run.relay, clients, 0.1, logs_in=True)


# Refusals, as the ledger of writes counts them.


@contextlib.contextmanager
def refusing(store_server: Served) -> Iterator[list[str]]:
    """A server that refuses every update of a run with these properties, until the end of the block."""
    if store_server.store.name == "cassandra":
        # There is one replica.
        yield ["cassandra.writeconsistencylevel=TWO"]
        return
    refuse = redis_without_memory if store_server.store.name == "redis" else postgres_without_right
    refuse(store_server, True)
    try:
        yield []
    finally:
        refuse(store_server, False)


def redis_without_memory(store_server: Served, refuse: bool) -> None:
    """Sets the memory limit below the memory in use, or removes the limit."""
    host, port = store_server.address
    with socket.create_connection((host, int(port)), timeout=10) as line:
        for arguments in ([b"AUTH", b"secret"], [b"CONFIG", b"SET", b"maxmemory", b"1" if refuse else b"0"]):
            line.sendall(array(arguments))
            assert line.recv(100) == b"+OK\r\n"


def postgres_without_right(store_server: Served, refuse: bool) -> None:
    """Revokes the role's right to update the table, or grants it again."""
    plan = store_server.up.running.plan
    programs = system.find_programs(store_server.up.running.place, plan, outside_directories.choose_user("postgres"))
    user = plan.settings["user"]
    change = f"REVOKE UPDATE ON usertable FROM {user}" if refuse else f"GRANT UPDATE ON usertable TO {user}"
    cluster.ask_server(programs, "127.0.0.1", plan.settings, change)


def test_server_refusals_of_updates_are_in_the_ledger(behind: Behind, engine: Engine) -> None:
    store_server = behind.store_server
    store_server.reset_table()
    rest = f"{store_server.store.name} -P workloads/workloada recordcount={RECORDS}"
    rest += f" fieldlength=40 seed=7 -threads {CLIENTS}"
    assert engine(f"load {rest} versions=true", *store_server.arguments()).returns("INSERT") == {"OK": RECORDS}
    line = f"run {rest} readproportion=0 updateproportion=1 operationcount=500 ledger=run.ledger"
    (engine.home / "spec.json").write_text(engine(line, "--print-spec", *store_server.arguments()).out)
    with refusing(store_server) as more:
        assert engine.run(line, *store_server.arguments(), *more).returns("UPDATE").keys() <= {
            "NO_SPACE",
            "FORBIDDEN",
            "SERVICE_UNAVAILABLE",
        }
    command = [str(engine.program), "ledger", "--spec", "spec.json"]
    done = subprocess.run(command, cwd=engine.home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["writes"] == {"acknowledged": 0, "retried": 0, "refused": 500, "maybe": 0, "unknown": 0}
    # Exactly the loaded records are present.
    assert summary["found"]["fine"] == summary["read"]["fields"] > 0
