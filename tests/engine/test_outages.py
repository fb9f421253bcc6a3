"""During an outage, a real engine reports the failures, and their times, that a simple simulation predicts.

A small server refuses connections, or reads nothing, for a time. In `make soak` (LOADSTONE_OUTAGES=all) outages last up
to 30 s, with up to 2,000 clients.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadstone.engine.events import Interval, Ready, Summary
from scripted_redis import ON_RECORDS, FakeRedis, bulk
from scripted_relay import Fault
from stall_support import STALL_SECONDS, StallWatch
from trial_support import Running, rate, spec, work
from window_support import HEADWAY_NS, SLACK, check_refusals, sums, unix_less_monotonic_ns

PER_SECOND = 500
# The time before the outage, and the time after it.
BEFORE, AFTER = 0.5, 2.0
# Refused operations do not wait for the timeout, so it can allow for slow answers on a busy host.
TIMEOUT_MS = {"gone": 10_000, "mute": 400}
UPDATES = {"read": 0, "update": 1, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}
# The share of the operations that may deviate on a busy host.
SLACK_SHARE = 0.03
# The share of late operations on an idle host: timers fire up to 2 ms late, and in a long silence these delays add up.
LATE_SHARE = 0.02
ALL = os.environ.get("LOADSTONE_OUTAGES") == "all"
SECONDS = (1.0, 5.0, 30.0) if ALL else (1.0,)
CLIENTS = (4, 32, 256, 2000) if ALL else (4, 256)


@dataclass(frozen=True)
class Outage:
    """A trial whose server became unavailable at the instant BEFORE, for `seconds`."""

    summary: Summary
    intervals: list[Interval]
    server: FakeRedis
    seconds: float

    def count(self, status: str) -> int:
        """Updates that ended with this status."""
        return sum(
            outcome.count
            for outcome in self.summary.outcomes
            if (outcome.operation, outcome.status) == ("UPDATE", status)
        )


def measure(program: Path, kind: Any, seconds: float, clients: int, **changes: Any) -> Outage:
    """Runs updates at a rate through an outage."""
    end = BEFORE + seconds + AFTER
    with FakeRedis(Fault(kind, BEFORE, BEFORE + seconds)) as server:
        properties = {"redis.port": str(server.port), "redis.timeout": str(TIMEOUT_MS[kind]), **changes}
        trial = spec(
            store={"name": "redis", "properties": properties},
            work=work(records=200, insert_count=200, mix=UPDATES, field_count=1),
            clients=clients,
            interval_ms=100,
            pace=rate(PER_SECOND),
            until={"seconds": end},
            wait_for_start=True,
        )
        with Running(program, trial) as engine:
            while not isinstance(engine.next(), Ready):
                pass
            start_ns = time.time_ns() + HEADWAY_NS
            server.begin((start_ns - unix_less_monotonic_ns()) / 1e9)
            engine.say(json.dumps({"start_at": start_ns}))
            code, events = engine.read_remaining()
    summary = events[-1]
    assert isinstance(summary, Summary)
    assert (code, summary.end) == (0, "done"), summary.reason
    intervals = [event for event in events if isinstance(event, Interval)]
    sums(summary, intervals, int(end * PER_SECOND))
    return Outage(summary, intervals, server, seconds)


def clients_were_idle(run: Outage) -> bool:
    """Whether almost no refused operation waited for a client: a pause after one operation then delays no other.

    On a busy host, some operations wait for a processor.
    """
    return run.summary.late_client < run.count("SERVICE_UNAVAILABLE") / 4


def measure_on_time(
    program: Path,
    kind: Any,
    seconds: float,
    clients: int,
    is_on_time: Callable[[Outage], bool] = lambda _: True,
    **changes: Any,
) -> Outage:
    """Returns the first of up to five trials that no stall of the host disturbed, or else the fifth.

    On a busy host, the clients of a large trial may not even connect within the timeout of an operation.
    """
    for _ in range(4):
        with contextlib.suppress(EOFError), StallWatch() as watch:
            run = measure(program, kind, seconds, clients, **changes)
            if (
                watch.longest < STALL_SECONDS
                and run.summary.late_generator <= SLACK + LATE_SHARE * run.summary.operations
                and is_on_time(run)
            ):
                return run
    return measure(program, kind, seconds, clients, **changes)


def simulate(seconds: float, clients: int) -> tuple[int, int]:
    """Simulates a silent server as a queue: timeouts, and operations over 1 ms late because all clients were busy."""
    timed_out = late = 0
    free = [0.0] * clients
    until, timeout = BEFORE + seconds, TIMEOUT_MS["mute"] / 1000
    for number in range(int((until + AFTER) * PER_SECOND)):
        due = number / PER_SECOND
        idle = heapq.heappop(free)
        sent = max(due, idle)
        late += idle - due > 0.001
        silent = BEFORE <= sent < until
        timed_out += silent and until - sent > timeout
        heapq.heappush(free, sent + (min(until - sent, timeout) if silent else 0.0002))
    return timed_out, late


class ClusterNode(FakeRedis):
    """A node of a cluster in which each node has an equal share of the slots. It may refuse all commands on records."""

    def __init__(self, nodes: list[ClusterNode], *, refuses: bool = False) -> None:
        super().__init__()
        self.nodes = nodes
        self.refuses = refuses
        # The number of commands on records.
        self.received = 0

    def run(self, arguments: list[bytes]) -> bytes:
        if arguments[0].upper() == b"CLUSTER":
            ends = [16384 * at // len(self.nodes) for at in range(len(self.nodes) + 1)]
            return b"*%d\r\n%b" % (
                len(self.nodes),
                b"".join(
                    b"*3\r\n:%d\r\n:%d\r\n*2\r\n%b:%d\r\n" % (first, end - 1, bulk(b"127.0.0.1"), node.port)
                    for first, end, node in zip(ends, ends[1:], self.nodes, strict=False)
                ),
            )
        on_record = arguments[0].upper() in ON_RECORDS
        self.received += on_record
        return b"-ERR scripted\r\n" if on_record and self.refuses else super().run(arguments)


@pytest.mark.parametrize("segments", [1, 2])
def test_failures_count_in_the_range_of_their_node(program: Path, segments: int) -> None:
    nodes: list[ClusterNode] = []
    nodes += [ClusterNode(nodes, refuses=at == 2) for at in range(3)]
    sections = []
    with nodes[0], nodes[1], nodes[2]:
        for segment in range(segments):
            trial = spec(
                store={
                    "name": "redis",
                    "properties": {"redis.port": str(nodes[segment].port), "redis.cluster": "true"},
                },
                work=work(records=1000, insert_count=1000, mix=UPDATES, field_count=1),
                clients=8,
                segment={"k": segment, "n": segments},
                interval_ms=100,
                key_ranges=True,
                pace=rate(PER_SECOND),
                warmup_seconds=0.5,
                until={"seconds": 1.0},
            )
            before = [node.received for node in nodes]
            with Running(program, trial) as engine:
                code, events = engine.read_remaining()
            summary = events[-1]
            assert isinstance(summary, Summary)
            assert (code, summary.end) == (0, "done"), summary.reason
            ranges = summary.key_ranges
            assert ranges is not None
            sections.append(ranges)
            assert [len(row) for row in ranges.sent] == [10] * 3
            sent = np.sum(ranges.sent, axis=1)
            good = np.sum(ranges.good, axis=(0, 2))
            # The operations of the warm-up are not counted.
            assert all(sent < [node.received - count for node, count in zip(nodes, before, strict=True)])
            assert (sum(sent), sum(good)) == (summary.operations, summary.succeeded)
            assert all(sent > 0)
            assert good.tolist() == [sent[0], sent[1], 0]
    assert len({section.shares for section in sections}) == 1
    assert sections[0].shares == pytest.approx([1 / 3] * 3, abs=1e-4)


def test_single_server_has_no_key_ranges(program: Path) -> None:
    with FakeRedis() as server:
        trial = spec(
            store={"name": "redis", "properties": {"redis.port": str(server.port)}},
            work=work(records=100, insert_count=100, mix=UPDATES, field_count=1),
            key_ranges=True,
            pace=rate(PER_SECOND),
            until={"seconds": 0.2},
        )
        with Running(program, trial) as engine:
            code, events = engine.read_remaining()
    assert isinstance(events[-1], Summary)
    assert (code, events[-1].key_ranges) == (0, None)


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("clients", CLIENTS)
def test_refusals_fail_what_is_due_whatever_the_clients(program: Path, clients: int, seconds: float) -> None:
    run = measure_on_time(program, "gone", seconds, clients, clients_were_idle)
    if ALL:
        assert run.server.reopened is not None
        assert min(log.received for log in run.server.log if log.received > run.server.reopened) <= (
            run.server.reopened + 1.0
        )
    failed = run.count("SERVICE_UNAVAILABLE")
    assert failed == run.summary.failures
    check_refusals(run.summary, run.intervals, run.server, clients, SLACK_SHARE, logs_in=False)
    assert clients_were_idle(run)
    # After the outage, each client needs one attempt to connect.
    connecting = run.summary.connection_attempts
    assert connecting is not None
    assert connecting.attempted <= connecting.failed + clients + SLACK


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("clients", CLIENTS)
def test_silence_blocks_each_client_for_one_timeout(program: Path, clients: int, seconds: float) -> None:
    timed_out, late = simulate(seconds, clients)
    few = simulate(seconds, 4)[1]
    expected = pytest.approx(timed_out, rel=SLACK_SHARE, abs=max(SLACK, 2 * min(clients, 64)))

    def equals_queue(run: Outage) -> bool:
        return run.count("TIMEOUT") == expected and abs(run.summary.late_client - late) < few / 2

    assert (late == 0) == (clients > PER_SECOND * TIMEOUT_MS["mute"] / 1000)
    assert equals_queue(measure_on_time(program, "mute", seconds, clients, equals_queue))


def test_reconnect_policy_is_a_property(program: Path) -> None:
    def count_failures(run: Outage) -> int:
        connecting = run.summary.connection_attempts
        assert connecting is not None
        return connecting.failed

    # On a busy host, the engine makes fewer attempts to connect.
    run = measure_on_time(program, "gone", 1.5, 4, lambda run: count_failures(run) >= 15, reconnect="constant(50ms)")
    assert 15 <= count_failures(run) <= 38
