"""What was due in a window is measured or censored, whatever the server does, and nothing moves the window."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadstone.event import Earlier, Interval, Summary, parse
from loadstone.lab.figures import by_operation
from loadstone.percentile import Percentile
from scripted_relay import FakeRedis, Fault
from trial_support import HANGS_SECONDS, rate, work

RECORDS = 200
READS = {"read": 1, "update": 0, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}


def trial(engine: Path, server: FakeRedis, timeout_ms: int = 10_000, **changes: Any) -> tuple[Summary, list[Interval]]:
    """Reads of records that are there, 500 a second for two seconds; the first operation begins the script."""
    for number in range(RECORDS):
        server.hashes[b"user%d" % number] = {b"field%d" % field: b"x" * 100 for field in range(10)}
    where = {"redis.host": "127.0.0.1", "redis.port": str(server.port), "redis.timeout": str(timeout_ms)}
    mix = changes.pop("mix", READS)
    spec = {
        "spec": 2,
        "store": {"name": "redis", "properties": where},
        "phase": "run",
        "work": work(records=RECORDS, insert_count=RECORDS, insert_order="ordered", mix=mix),
        "clients": 4,
        "seed": 7,
        "interval_ms": 250,
        "pace": rate(500),
        "until": {"seconds": 2},
        "sinks": [{"sink": "hdr_ns"}],
        **changes,
    }
    run = subprocess.run(
        [engine, "trial"], input=json.dumps(spec) + "\n", capture_output=True, text=True, timeout=HANGS_SECONDS
    )
    events = [parse(line) for line in run.stdout.splitlines()]
    summary = events[-1]
    assert isinstance(summary, Summary), run.stderr
    return summary, [event for event in events if isinstance(event, Interval)]


def sums(summary: Summary, intervals: list[Interval], due: int) -> None:
    """Everything due is exactly one of ended, unanswered and unsent, in all and in each interval."""
    assert summary.due == due == summary.operations + summary.in_flight + summary.unsent
    assert [each.k for each in intervals] == list(range(len(intervals)))
    assert sum(each.due or 0 for each in intervals) == due
    parts: list[Interval | Earlier] = [*intervals, *(more for each in intervals for more in each.earlier)]
    ended = dict.fromkeys((each.k for each in intervals), 0)
    for part in parts:
        ended[part.k] += part.good + part.late + part.failed + part.not_yet
    assert sum(ended.values()) == summary.operations
    assert all(ended[each.k] <= (each.due or 0) for each in intervals)
    assert sum(part.completed for part in parts) == summary.completed
    censored = sum(each.count for each in summary.outcomes if each.status == "CENSORED")
    assert censored == summary.in_flight + summary.unsent


def percentiles(summary: Summary, *shares: float) -> list[Percentile]:
    """Of the response times of all reads."""
    return by_operation(summary.outcomes, "response")["read"][0].percentiles(shares)


def test_a_stall_up_to_the_end_is_in_the_tail(program: Path) -> None:
    with FakeRedis(Fault("stall", 1.0, 2.1)) as server:
        summary, intervals = trial(program, server)
    sums(summary, intervals, 1000)
    # Half of all came while the server was silent; the median of those waited half of it.
    p99 = percentiles(summary, 0.99)[0]
    assert p99.value >= 1.0e9
    assert p99.bound in (None, "at_least")


def test_a_server_that_falls_silent_for_good_leaves_bounds(program: Path) -> None:
    with FakeRedis(Fault("drop", 1.0)) as server:
        summary, intervals = trial(program, server, timeout_ms=500)
    sums(summary, intervals, 1000)
    assert summary.unsent > 300
    assert (summary.measured_ns, summary.end) == (2_000_000_000, "done")
    assert percentiles(summary, 0.99)[0].bound is not None


@pytest.mark.parametrize("fault", [Fault("reset", 0.5, every=50), Fault("half_close", 1.0, every=20)])
def test_broken_connections_are_failures_and_nothing_hangs(program: Path, fault: Fault) -> None:
    with FakeRedis(fault) as server:
        summary, intervals = trial(program, server)
    sums(summary, intervals, 1000)
    assert summary.failed > 0


def test_a_late_answer_does_not_stretch_a_window(program: Path) -> None:
    closed: dict[str, Any] = {"pace": {"mode": "closed"}, "clients": 10, "until": {"seconds": 1}}
    # Each answer takes a millisecond, one of 500 takes 1.8 s.
    slow = Fault("late", seconds=1.8, start=0.3, end=0.31, every=5)
    with FakeRedis(slow, Fault("late", seconds=0.001)) as server:
        summary, intervals = trial(program, server, **closed)
    assert summary.measured_ns == 1_000_000_000
    assert summary.completed < summary.succeeded
    assert (
        sum(each.completed for each in intervals) + sum(more.completed for each in intervals for more in each.earlier)
        == summary.completed
    )
    # What the server answered in the window, but for what was on its way at the borders.
    assert server.zero is not None
    answered = [log.answered - server.zero for log in server.log if log.answered is not None]
    assert abs(summary.completed - sum(0 <= each < 1 for each in answered)) <= 40


def test_operations_without_an_answer_are_failures_in_the_tail(program: Path) -> None:
    with FakeRedis(Fault("silent", every=200)) as server:
        summary, intervals = trial(program, server, timeout_ms=100, clients=50)
    sums(summary, intervals, 1000)
    assert 3 <= summary.failed <= 9
    p99, p999 = percentiles(summary, 0.99, 0.999)
    assert (p99.bound, p999.bound) == (None, "failed")


def test_a_pair_whose_update_fails_has_failed(program: Path) -> None:
    pairs = {**READS, "read": 0, "read_modify_write": 1}
    with FakeRedis() as server:
        server.refused_commands = {b"HMSET", b"HSET"}
        summary, _ = trial(program, server, mix=pairs, pace=rate(50), until={"seconds": 1})
    statuses = {each.status for each in summary.outcomes if each.operation == "READ-MODIFY-WRITE" and each.count}
    assert "OK" not in statuses
    assert (summary.succeeded, summary.failed) == (0, summary.operations)


def test_what_could_not_be_sent_is_censored(program: Path) -> None:
    with FakeRedis(Fault("late", seconds=0.001)) as server:
        summary, intervals = trial(program, server, pace=rate(20_000), until={"seconds": 1})
        sums(summary, intervals, 20_000)
        # Four clients wait for a millisecond each: the server saw all that was sent.
        assert summary.operations + summary.in_flight <= len(server.log)
        assert summary.unsent > 10_000


@pytest.mark.parametrize("seed", range(8))
def test_everything_due_is_told_whatever_the_stall(program: Path, seed: int) -> None:
    draw = random.Random(seed)
    start, per_second, seconds = draw.uniform(0, 2), draw.choice([100, 400, 1000]), draw.choice([1, 2])
    warmup = draw.choice([0, 0.5])
    with FakeRedis(Fault("stall", start, start + draw.uniform(0.1, 2))) as server:
        summary, intervals = trial(
            program,
            server,
            clients=draw.randint(1, 8),
            pace=rate(per_second),
            until={"seconds": seconds},
            warmup_seconds=warmup,
        )
    sums(summary, intervals, per_second * seconds)
