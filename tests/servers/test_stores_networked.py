"""Stores that reach a server: on the real one, through its whole life.

Each is an entry of `STORES` (networked_support.py). Its server is started here, the cases of
`crates/stores/tests/networked` run on it, and then the engine's own binary meets what happens to servers: they are
killed, paused and restarted, are somewhere else, lack a table, want another password. Every operation must end with a
status that says why, and no run may hang.
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
from scripted_relay import Fault, Relay, array
from systems_support import up
from trial_support import Start, counts, whole, work
from window_support import CLIENTS as RELAYED_CLIENTS
from window_support import DUE, Relayed, check_refusals, percentiles, relayed, sums


@pytest.fixture(scope="module", params=[pytest.param(store, id=store.name) for store in STORES])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    store: Networked = request.param
    with up(store.system, store.nodes, **store.settings) as system:
        found = Served(store, system)
        found.fresh()
        yield found


def leave_to_soak(*names: str) -> pytest.MarkDecorator:
    """All stores; `make soak` runs the test on those named: their driver or their fault is covered without them."""
    stores = [pytest.param(store, id=store.name, marks=[pytest.mark.soak] * (store.name in names)) for store in STORES]
    return pytest.mark.parametrize("served", stores, indirect=True)


def started(process: subprocess.Popen[str]) -> None:
    """Waits until the run measures."""
    assert process.stderr
    output = []
    for line in process.stderr:
        output.append(line)
        if line == "Starting test.\n":
            return
    raise AssertionError(f"it ended before it began:\n{''.join(output)}")


def ended(process: subprocess.Popen[str]) -> CommandResult:
    """Waits for a run that was started: none may hang."""
    out, err = process.communicate(timeout=60)
    assert "panicked" not in err, err
    return CommandResult(process.returncode, out, err, 0)


def statuses(result: CommandResult) -> Counter[str]:
    """What operations ended with, over reads and updates; each kind's statuses must add up to its histograms."""
    found: Counter[str] = Counter()
    for metric in ("READ", "UPDATE"):
        returns = result.returns(metric)
        found.update(returns)
        assert result.value(metric, "Operations") == returns.get("OK", 0)
        failed = sum(returns.values()) - returns.get("OK", 0)
        if failed:
            assert result.value(f"{metric}-FAILED", "Operations") == failed
    return found


def refused(result: CommandResult, *words: str) -> None:
    """It did not begin, and said why in a line, and what to do in another."""
    assert result.code == 1, result.err
    assert "Starting test." not in result.err
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.err
    for word in words:
        assert word in errors[0], result.err
    assert re.fullmatch(r"hint: \S.*", result.err.splitlines()[-1]), f"a hint is missing: {result.err}"


def test_the_cases_of_every_networked_store(served: Served) -> None:
    filter_ = f"{served.store.name}::"
    variables = {served.store.variable: " ".join(served.words())}
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


def test_what_was_loaded_is_read_and_right(served: Served, engine: Engine) -> None:
    served.load(engine)
    line = (
        f"run {served.store.name} -P workloads/workloadb recordcount={RECORDS} operationcount=2000 dataintegrity=true"
    )
    for more in ("", "readallfields=false", "readproportion=0.5 readmodifywriteproportion=0.5"):
        result = engine(f"{line} -threads {CLIENTS} {more}", *served.words())
        assert result.returns("VERIFY")["OK"] == sum(result.returns("READ").values()) > 0
        assert sum(statuses(result).values()) == statuses(result)["OK"]
    result = engine(
        f"run {served.store.name} -P workloads/workloade recordcount={RECORDS} operationcount=200 insertproportion=0",
        "scanproportion=1",
        *served.words(),
    )
    assert result.returns("SCAN") == {"OK": 200}


@leave_to_soak("postgrenosql")
def test_many_clients(served: Served, engine: Engine) -> None:
    clients = served.store.many_clients
    served.load(engine)
    line = f"run {served.store.name} -P workloads/workloada recordcount={RECORDS} operationcount={20 * clients}"
    result = engine(f"{line} -threads {clients} dataintegrity=true", *served.words())
    assert statuses(result) == {"OK": 20 * clients}


@leave_to_soak("postgrenosql")
def test_killed_server_is_named_without_ending_the_run(
    served: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    served.load(engine)
    process = engine.start(*served.run(4))
    running.append(process)
    started(process)
    time.sleep(1)
    served.up.running.kill()
    result = ended(process)
    assert result.code == 1, result.err
    assert "got no answer" not in result.err, "every operation ends with a status"
    found = statuses(result)
    assert found["OK"] > 0
    assert sum(found[status] for status in served.store.killed) > 0
    assert {*found} <= {"OK", *GONE}
    words = rf"warning: \d+ x (READ|UPDATE) returned ({'|'.join(served.store.killed)}); the first: \S"
    assert re.search(words, result.err), result.err
    # No limit of a store is beyond 10 s; HBase's own, which add up to 20 min, are ended 2 s later.
    gone = [metric for metric in result.metrics() if metric.endswith("-FAILED")]
    assert max(result.value(metric, "MaxLatency(us)") for metric in gone) < 25e6
    # The rest of the run was spent asking, not spinning.
    assert sum(found.values()) - found["OK"] < 4 * CLIENTS * 30


@leave_to_soak("postgrenosql", "hbase")
def test_operations_succeed_after_a_restart_and_are_counted(served: Served, engine: Engine, start: Start) -> None:
    served.load(engine)
    with start(
        store={"name": served.store.name, "properties": served.properties},
        work=work(records=RECORDS, insert_count=RECORDS),
        clients=CLIENTS,
        until={"seconds": 600},
        interval_ms=250,
    ) as trial:
        events: list[Event] = [trial.next()]
        while served_ok(events) < 100:
            events.append(trial.next())
        served.up.running.kill()
        while failed(events) < CLIENTS:
            events.append(trial.next())
        served.up.running.up(served.store.nodes, served.up.running.plan.settings)
        until = len(events)
        while served_ok(events[until:]) < 1000:
            events.append(trial.next())
        # Every client has its connection again.
        until = len(events)
        while len(events) < until + 8:
            events.append(trial.next())
        last = [event for event in events if isinstance(event, Interval)][-4:]
        trial.say('"stop"')
        _, rest = trial.rest()
    summary = whole(rest)
    assert {status for _, status in counts(summary.outcomes)} <= {"OK", *GONE}
    assert sum(interval.ended for interval in last) == sum(interval.completed for interval in last) > 0


def served_ok(events: list[Event]) -> int:
    """Operations that succeeded in these intervals."""
    return sum(event.completed for event in events if isinstance(event, Interval))


def failed(events: list[Event]) -> int:
    """Operations that failed in these intervals."""
    return sum(event.ended - event.completed for event in events if isinstance(event, Interval))


def run_through_pause(
    served: Served, engine: Engine, running: list[subprocess.Popen[str]], timeout_ms: int
) -> tuple[CommandResult, float]:
    """A run whose server is paused, and its slowest operation, us."""
    served.load(engine)
    process = engine.start(*served.run(8, f"{served.store.timeout}={timeout_ms}"))
    running.append(process)
    started(process)
    time.sleep(1)
    served.up.running.pause()
    try:
        time.sleep(PAUSE_SECONDS)
    finally:
        served.up.running.resume()
    result = ended(process)
    # A late answer must not be another request's: it would be UNEXPECTED_STATE. (ERROR: a read returned nothing.)
    assert {*result.returns("VERIFY")} <= {"OK", "ERROR"}
    return result, max(result.value(metric, "MaxLatency(us)") for metric in ("READ", "UPDATE"))


@leave_to_soak("postgrenosql", "cassandra", "hbase")
def test_pause_within_the_timeout_only_delays(
    served: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    result, slowest_us = run_through_pause(served, engine, running, 30_000)
    assert {*statuses(result)} == {"OK"}
    assert result.code == 0, result.err
    assert slowest_us > 0.9 * PAUSE_SECONDS * 1e6


@leave_to_soak("postgrenosql")
def test_pause_beyond_the_timeout_is_a_failure(
    served: Served, engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    result, slowest_us = run_through_pause(served, engine, running, 1_500)
    found = statuses(result)
    assert found["TIMEOUT"] >= CLIENTS
    assert {*found} <= {"OK", *GONE}
    assert result.code == 1
    assert re.search(rf"returned TIMEOUT; the first: .*{served.store.late}", result.err), result.err
    assert slowest_us < 0.9 * PAUSE_SECONDS * 1e6


def test_wrong_addresses_are_refused(served: Served, engine: Engine) -> None:
    for host, port in (("no-such-host.invalid", served.address[1]), (served.address[0], "1")):
        words = [f"{name}={value}" for name, value in served.elsewhere(host, port).items()]
        for verb in ("load", "run"):
            line = f"{verb} {served.store.name} -P workloads/workloada"
            refused(engine.run(line, *words), host, port)


def test_invalid_or_useless_credentials_are_refused(served: Served, engine: Engine) -> None:
    served.fresh()
    line = f"run {served.store.name} -P workloads/workloada"
    if served.store.password is None:
        result = engine.run(line, *served.words(), "principal=ycsb@EXAMPLE.COM", "keytab=/etc/ycsb.keytab")
        assert result.code == 2
        assert result.messages("error: ") == ["Kerberos is not supported yet (principal, keytab)"]
        return
    result = engine.run(line, *served.words(), f"{served.store.password}=wrong")
    refused(result, ":".join(served.address))
    assert served.store.password in result.err
    if served.store.name == "redis":
        result = engine.run(line, *[word for word in served.words() if not word.startswith("redis.password")])
        refused(result, ":".join(served.address), "NOAUTH")


def test_missing_table_message_shows_how_to_create_it(served: Served, engine: Engine) -> None:
    if served.store.table is None:
        # The name of a table has no effect: what was loaded under one is found under any.
        served.load(engine)
        line = f"run {served.store.name} -P workloads/workloadc recordcount={RECORDS} operationcount=50"
        assert engine(line, "table=nosuchtable", *served.words()).returns("READ") == {"OK": 50}
        return
    served.fresh()
    for verb in ("load", "run"):
        result = engine.run(f"{verb} {served.store.name} -P workloads/workloada table=nosuchtable", *served.words())
        refused(result, "nosuchtable", ":".join(served.address))
        assert re.search(served.store.makes_table, result.err), result.err


def test_run_on_an_empty_table_reads_no_records(served: Served, engine: Engine) -> None:
    served.fresh()
    result = engine.run(
        f"run {served.store.name} -P workloads/workloadc recordcount=10 operationcount=20", *served.words()
    )
    assert result.returns("READ") == {"NOT_FOUND": 20}
    assert result.code == 1


def test_the_promise_is_the_servers_own(served: Served, engine: Engine) -> None:
    served.fresh()
    result = engine.run(
        f"run {served.store.name} -P workloads/workloadc recordcount=10 operationcount=20", *served.words()
    )
    (store,) = result.messages("Store: ")
    assert re.search(r"version [A-Z]\w+ \d", store), store
    assert f"address {':'.join(served.address)}" in store
    assert len(result.messages("Writes survive: ")) == 1


# The window, through a relay whose faults follow a script.

# Cassandra's single node is reached where the store was told, so that a relay is not left. Not here: `postgrenosql`,
# which has the connections of `postgres`; and HBase, whose client learns from ZooKeeper where its region servers are.
BEHIND_RELAY = ("redis", "postgres", "cassandra")


@dataclass(frozen=True)
class Behind:
    """A store with its records, whose server is reached through a relay."""

    served: Served
    program: Path

    def run(
        self,
        *faults: Fault,
        reset_at: float | None = None,
        timeout_ms: int | None = None,
        clients: int = RELAYED_CLIENTS,
    ) -> Relayed:
        """A trial with these faults from the start of its window on."""
        _, port = self.served.address
        with Relay(int(port), *faults) as relay:
            found = self.served.elsewhere("127.0.0.1", str(relay.port))
            if timeout_ms is not None:
                found[self.served.store.timeout] = str(timeout_ms)
            store = {"name": self.served.store.name, "properties": found}
            return relayed(self.program, relay, store, RECORDS, reset_at, clients)


@pytest.fixture(scope="module")
def behind(served: Served, shared: Engine, program: Path) -> Behind:
    if served.store.name not in BEHIND_RELAY:
        pytest.skip("no relay for this store")
    served.load(shared)
    return Behind(served, program)


def test_relayed_final_stall_is_in_the_tail(behind: Behind) -> None:
    run = behind.run(Fault("stall", 1.0, 2.1))
    least = run.check()
    # Those that came within the first tenth of the silence waited for a second.
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
    # Clients of Cassandra share a connection.
    each = RELAYED_CLIENTS if behind.served.store.name == "cassandra" else 1
    summary, connecting = run.summary, run.summary.connection_attempts
    assert connecting is not None
    assert summary.failures - summary.unreached <= run.relay.resets * each, summary.words
    # A handshake that is reset fails the operation that waited for it. On a busy host, two in a row may be reset: until
    # the next attempt, operations fail unsent.
    assert summary.unreached <= connecting.failed * each or connecting.failed > 1, summary.words
    assert run.failed_if_broken


@pytest.mark.parametrize("kind", ["half_close", "half_stall"])
def test_behind_a_relay_half_an_answer_is_none(behind: Behind, kind: Literal["half_close", "half_stall"]) -> None:
    silent = kind == "half_stall"
    run = behind.run(Fault(kind, 0.5, every=20), timeout_ms=500 if silent else None)
    run.check()
    assert run.statuses <= {"OK", "SERVICE_UNAVAILABLE"} | ({"TIMEOUT"} if silent else set())
    assert run.failed_if_broken


@pytest.mark.parametrize("many", [False, True], ids=["4 clients", "many clients"])
def test_relay_refusals_fail_due_operations(behind: Behind, many: bool) -> None:
    clients = min(256, behind.served.store.many_clients) if many else 4
    run = behind.run(Fault("gone", 0.5, 1.0), clients=clients)
    sums(run.summary, run.intervals, DUE)
    assert run.statuses <= {"OK", "SERVICE_UNAVAILABLE"}
    check_refusals(run.summary, run.intervals, run.relay, clients, 0.1, logs_in=True)


# Refusals, as the ledger of writes counts them.


@contextlib.contextmanager
def refusing(served: Served) -> Iterator[list[str]]:
    """The server refuses every update of a run with these properties, until the end of the block."""
    if served.store.name == "cassandra":
        # There is one replica.
        yield ["cassandra.writeconsistencylevel=TWO"]
        return
    refuse = redis_without_memory if served.store.name == "redis" else postgres_without_right
    refuse(served, True)
    try:
        yield []
    finally:
        refuse(served, False)


def redis_without_memory(served: Served, refuse: bool) -> None:
    """More memory is in use than there may be, or there is no limit."""
    host, port = served.address
    with socket.create_connection((host, int(port)), timeout=10) as line:
        for words in ([b"AUTH", b"secret"], [b"CONFIG", b"SET", b"maxmemory", b"1" if refuse else b"0"]):
            line.sendall(array(words))
            assert line.recv(100) == b"+OK\r\n"


def postgres_without_right(served: Served, refuse: bool) -> None:
    """The role may not update the table, or may."""
    plan = served.up.running.plan
    programs = system.find_programs(served.up.running.place, plan, outside_directories.choose_user("postgres"))
    user = plan.settings["user"]
    change = f"REVOKE UPDATE ON usertable FROM {user}" if refuse else f"GRANT UPDATE ON usertable TO {user}"
    cluster.ask_server(programs, "127.0.0.1", plan.settings, change)


def test_server_refusals_of_updates_are_in_the_ledger(behind: Behind, engine: Engine) -> None:
    served = behind.served
    served.fresh()
    rest = f"{served.store.name} -P workloads/workloada recordcount={RECORDS} fieldlength=40 seed=7 -threads {CLIENTS}"
    assert engine(f"load {rest} versions=true", *served.words()).returns("INSERT") == {"OK": RECORDS}
    line = f"run {rest} readproportion=0 updateproportion=1 operationcount=500 ledger=run.ledger"
    (engine.home / "spec.json").write_text(engine(line, "--print-spec", *served.words()).out)
    with refusing(served) as more:
        assert engine.run(line, *served.words(), *more).returns("UPDATE").keys() <= {
            "NO_SPACE",
            "FORBIDDEN",
            "SERVICE_UNAVAILABLE",
        }
    command = [str(engine.program), "ledger", "--spec", "spec.json"]
    done = subprocess.run(command, cwd=engine.home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["writes"] == {"acknowledged": 0, "retried": 0, "refused": 500, "maybe": 0, "unknown": 0}
    # What was loaded is there, and nothing else.
    assert summary["found"]["fine"] == summary["read"]["fields"] > 0
