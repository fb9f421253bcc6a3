"""Every operation due in a window is measured or censored, whatever the server does; nothing changes the window."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Engine
from loadstone.engine.events import Earlier, Interval, Ready, Result, Summary, parse_event
from loadstone.judge.checks import rate as rate_not_held
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.runner.engine_figures import group_by_operation, summarize_run
from scripted_redis import FakeRedis
from scripted_relay import Fault, Relay
from stall_support import STALL_SECONDS, StallWatch
from trial_support import HANGS_SECONDS, rate, spec, work
from window_support import CLOCKS_NS, percentiles, responses_of, run_relayed, sums, unix_less_monotonic_ns

RECORDS = 200
READS = {"read": 1, "update": 0, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}


def trial(engine: Path, server: FakeRedis, timeout_ms: int = 10_000, **changes: Any) -> tuple[Summary, list[Interval]]:
    """Reads existing records, 500 per second for two seconds; the script starts at the first operation."""
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
    events = [parse_event(line) for line in run.stdout.splitlines()]
    summary = events[-1]
    assert isinstance(summary, Summary), run.stderr
    return summary, [event for event in events if isinstance(event, Interval)]


def is_rate_missed(summary: Summary) -> bool:
    """Whether the judge reports that the rate was not reached."""
    ready = Ready(2, "0", 1, "redis", "none", "", {}, 4, 0.0, 0.0)
    values = {value.metric: value for value in summarize_run(Result(ready, (), summary), 0)}
    return bool([*rate_not_held.check_rate(TrialResult("t", {}, 1, values, loop="open"), Settings())])


def test_stall_until_the_end_is_in_the_tail(program: Path) -> None:
    with FakeRedis(Fault("stall", 1.0, 2.1)) as server:
        summary, intervals = trial(program, server)
    sums(summary, intervals, 1000)
    # Half of all operations became due while the server was silent; the quantile covers all operations, with bounds for
    # censored operations.
    responses = responses_of(summary.outcomes)
    p99 = percentiles(summary, 0.99)[0]
    assert (p99.value, p99.bound in (None, "at_least")) == (responses.value_at_quantile(0.99), True)
    assert p99.value >= 1.0e9
    # Operations count in the intervals in which they were due: no operation was answered before 2.1 s.
    assert server.zero is not None
    zero_ns = round(server.zero * 1e9) + unix_less_monotonic_ns() - summary.start_unix_ns
    for interval_of in intervals:
        end_ns = interval_of.start_ns + interval_of.length_ns
        if interval_of.start_ns >= zero_ns + 1.0e9:
            parts: list[Interval | Earlier] = [
                interval_of,
                *(more for interval in intervals for more in interval.earlier if more.k == interval_of.k),
            ]
            slow = responses_of([outcome for part in parts for outcome in part.outcomes])
            assert slow.count == 0 or slow.minimum >= zero_ns + 2.1e9 - end_ns - CLOCKS_NS


def test_permanently_silent_server_leaves_bounds(program: Path) -> None:
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
    assert summary.failures > 0


def test_a_late_answer_does_not_stretch_a_window(program: Path) -> None:
    closed: dict[str, Any] = {"pace": {"mode": "closed"}, "clients": 10, "until": {"seconds": 1}}
    # Each answer takes a millisecond, except for a few that take 1.8 s.
    slow = Fault("late", seconds=1.8, start=0.3, end=0.31, every=5)
    with FakeRedis(slow, Fault("late", seconds=0.001)) as server:
        summary, intervals = trial(program, server, **closed)
    assert summary.measured_ns == 1_000_000_000
    assert summary.completed < summary.succeeded
    assert (
        sum(interval.completed for interval in intervals)
        + sum(more.completed for interval in intervals for more in interval.earlier)
        == summary.completed
    )
    # Bounds from the server's log: the answers before the end, and the requests before the end, minus one per client.
    end = (summary.start_unix_ns + summary.measured_ns - unix_less_monotonic_ns()) / 1e9
    assert server.zero is not None
    requests = [log for log in server.log if log.received >= server.zero]
    answered = sum(log.answered is not None and log.answered < end + CLOCKS_NS / 1e9 for log in requests)
    assert len([log for log in requests if log.received < end - CLOCKS_NS / 1e9]) - 10 <= summary.completed <= answered


def test_unanswered_operations_are_failures_in_the_tail(program: Path) -> None:
    with FakeRedis(Fault("silent", every=200)) as server:
        summary, intervals = trial(program, server, timeout_ms=100, clients=50)
    sums(summary, intervals, 1000)
    assert 3 <= summary.failures <= 9
    p99, p999 = percentiles(summary, 0.99, 0.999)
    assert (p99.bound, p999.bound) == (None, "failed")


def test_a_pair_whose_update_fails_has_failed(program: Path) -> None:
    pairs = {**READS, "read": 0, "read_modify_write": 1}
    with FakeRedis() as server:
        server.refused_commands = {b"HMSET", b"HSET"}
        summary, _ = trial(program, server, mix=pairs, pace=rate(50), until={"seconds": 1})
    statuses = {
        outcome.status for outcome in summary.outcomes if outcome.operation == "READ-MODIFY-WRITE" and outcome.count
    }
    assert "OK" not in statuses
    assert (summary.succeeded, summary.failures) == (0, summary.operations)


def test_what_could_not_be_sent_is_censored(program: Path) -> None:
    with FakeRedis(Fault("late", seconds=0.001)) as server:
        summary, intervals = trial(program, server, pace=rate(20_000), until={"seconds": 1})
        sums(summary, intervals, 20_000)
        # Four clients wait for a millisecond each: the server received all requests that were sent.
        assert summary.operations + summary.in_flight <= len(server.log)
        assert summary.unsent > 10_000
    assert is_rate_missed(summary)
    # A busy host may stop the engine for a third of the second, but not in each of five trials.
    for _ in range(5):
        with FakeRedis() as server:
            summary, _ = trial(program, server, pace=rate(100), until={"seconds": 1})
        if not summary.in_flight + summary.unsent:
            break
    assert (summary.in_flight + summary.unsent, is_rate_missed(summary)) == (0, False)


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


def test_warm_up_backlog_adds_no_window_throughput(program: Path) -> None:
    with FakeRedis(Fault("stall", 0.05, 1.49)) as server:
        summary, intervals = trial(program, server, pace=rate(1_000), warmup_seconds=1.5, until={"seconds": 1})
    sums(summary, intervals, 1_000)
    assert summary.completed <= 1_000
    # Most of 1,440 operations were carried over, unless the server completed them within 10 ms.
    carried = summary.carried
    assert (carried.unanswered, carried.unsent) == (0, 0)
    assert carried.ended > 0
    assert carried.ns_max > 0


def test_server_killed_in_the_warm_up_is_reported(engine: Engine) -> None:
    line = "run redis -P workloads/workloadc recordcount=10 operationcount=0 maxexecutiontime=1 redis.timeout=3000"
    with FakeRedis(Fault("drop", 0.2)) as server:
        for number in range(10):
            server.hashes[b"user%d" % number] = {b"field%d" % field: b"x" for field in range(10)}
        result = engine.run(
            line, "warmuptime=1", "insertorder=ordered", "redis.host=127.0.0.1", f"redis.port={server.port}"
        )
    assert result.code == 1
    assert "no operation of this run finished in the measured time" in result.err
    assert "note: carried-over: 1 operation of the warm-up had not completed when the window began" in result.err


def test_engine_pause_affects_response_but_not_lower_bound(program: Path, tmp_path: Path) -> None:
    def lmdb(**changes: Any) -> str:
        return json.dumps(spec("lmdb", tmp_path / "data", clients=4, **changes)) + "\n"

    load = lmdb(phase="load", until={"operations": 2_000})
    subprocess.run([program, "trial"], input=load, check=True, capture_output=True, text=True)

    def run_paused() -> tuple[Summary, float]:
        run = subprocess.Popen([program, "trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert run.stdin
        assert run.stdout
        with StallWatch() as watch:
            run.stdin.write(lmdb(pace=rate(3_000), until={"seconds": 1}))
            run.stdin.flush()
            assert isinstance(parse_event(run.stdout.readline()), Ready)
            time.sleep(0.3)
            run.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            run.send_signal(signal.SIGCONT)
            output, _ = run.communicate(timeout=HANGS_SECONDS)
        summary = parse_event(output.splitlines()[-1])
        assert isinstance(summary, Summary)
        return summary, watch.longest

    # The pause must be within the measured second, without a further stall of the host.
    summary = next(result for result, stall in (run_paused() for _ in range(20)) if stall < STALL_SECONDS)
    kinds = ("response", "lower")
    upper, lower = (group_by_operation(summary.outcomes, kind)["all"][0].read_percentiles([0.99])[0] for kind in kinds)
    assert upper.value > 0.2e9
    # The limit tolerates delays of single threads on this machine.
    assert lower.value < upper.value / 4
    assert summary.late_generator > 500 > summary.late_client
    assert max(executor.held_ns for executor in summary.executors) > 0.25e9


def test_tail_shorter_than_the_servers_log_is_detected(program: Path, engine: Engine) -> None:
    with FakeRedis() as server, Relay(server.port, Fault("stall", 1.0, 2.1)) as relay:
        load = f"load redis -P workloads/workloada recordcount={RECORDS} redis.host=127.0.0.1 redis.port={server.port}"
        engine(load)
        where = {"redis.host": "127.0.0.1", "redis.port": str(relay.port), "redis.timeout": "10000"}
        run = run_relayed(program, relay, {"name": "redis", "properties": where}, RECORDS)
        run.check()
        # If the server had been this slow, the engine would have understated the latencies.
        for log in relay.log:
            log.answered = None if log.answered is None else log.answered + 10
        with pytest.raises(AssertionError):
            run.check()
