"""The contract between the lab and the engine, with a real engine and real stores."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadstone.engine.events import Interval, Note, Ready, Summary
from loadstone.engine.histogram import decode_histogram
from loadstone.engine.trial import Trial, follow_trials
from trial_support import (
    STORES,
    Running,
    Start,
    add_histograms,
    check_sums,
    counts,
    events,
    rate,
    single_summary,
    spec,
    summary_of,
    work,
)

pytestmark = pytest.mark.usefixtures("engine_variable")

# The lease.


@pytest.mark.parametrize("store", STORES)
def test_closed_stdin_ends_the_load_with_its_results(
    start: Start, load_store: Callable[[str], Path | None], store: str
) -> None:
    engine = start(store, load_store(store), lease_ms=20_000)
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    closed = time.monotonic()
    engine.hang_up()
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.reason) == (1, "lease", "stdin closed")
    assert summary.succeeded == summary.operations > 0
    # The limit is below the spec's minute and the lease's 20 s.
    assert time.monotonic() - closed < 10
    assert 0.5e9 < summary.measured_ns < 15e9


def test_missing_heartbeat_ends_the_load_despite_open_stdin(start: Start) -> None:
    # The lease is long enough for the load to begin.
    engine = start(lease_ms=3000)
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.reason) == (1, "lease", "no heartbeat for 3000 ms")
    assert summary.operations > 0
    assert summary.measured_ns < 20e9


def test_any_line_is_a_sign_of_life(start: Start) -> None:
    engine = start(lease_ms=3000, until={"seconds": 7}, interval_ms=10_000)
    for word in ('"heartbeat"', "", "not JSON", '{"unheard": "of"}') * 100:
        if engine.process.poll() is not None:
            break
        # The engine may exit at any time.
        with contextlib.suppress(BrokenPipeError):
            engine.say(word)
        time.sleep(0.1)
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.reason) == (0, "done", None)
    assert summary.measured_ns > 6e9


@pytest.mark.parametrize("waits", [{"warmup_seconds": 60}, {"wait_for_start": True}])
def test_a_lease_counts_before_anything_is_measured_too(start: Start, waits: dict[str, Any]) -> None:
    engine = start(lease_ms=500, **waits)
    code, events = engine.read_remaining()
    assert (code, single_summary(events).end) == (1, "lease")


def test_hanging_lab_loses_its_lease(start: Start) -> None:
    # An interval every 2 ms fills the pipe long before the lease ends.
    engine = start(lease_ms=2000, interval_ms=2, until={"seconds": 10})
    time.sleep(4)
    summary = single_summary(engine.read_remaining()[1])
    assert summary.end == "lease"
    assert summary.measured_ns < 5e9


# Control lines and signals.


@pytest.mark.parametrize("store", STORES)
def test_stop_ends_the_load_well(start: Start, load_store: Callable[[str], Path | None], store: str) -> None:
    engine = start(store, load_store(store))
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    engine.say('"stop"')
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.reason) == (0, "stopped", "control line")
    assert summary.operations > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_load_with_its_results(start: Start, number: signal.Signals) -> None:
    engine = start()
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    engine.process.send_signal(number)
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.reason) == (130, "stopped", "interrupted")
    assert summary.operations > 0


def test_nothing_is_said_of_what_was_never_measured(start: Start) -> None:
    engine = start(wait_for_start=True)
    assert isinstance(engine.next(), Ready)
    engine.say('"stop"')
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.operations, summary.warmup_operations) == (0, "stopped", 0, 0)


def test_unmeasured_operations_cause_no_note(start: Start) -> None:
    engine = start(warmup_seconds=60)
    assert isinstance(engine.next(), Ready)
    time.sleep(1)
    engine.say('"stop"')
    assert not [event for event in engine.read_remaining()[1] if isinstance(event, Note)]


def test_stop_before_the_start_takes_effect_immediately(start: Start) -> None:
    engine = start(wait_for_start=True)
    assert isinstance(engine.next(), Ready)
    engine.say(json.dumps({"start_at": time.time_ns() + 60 * 10**9}))
    time.sleep(0.5)
    stopped = time.monotonic()
    engine.say('"stop"')
    assert engine.read_remaining()[0] == 0
    assert time.monotonic() - stopped < 4


# Segments.


@pytest.mark.parametrize("store", ["null", "lmdb"])
def test_two_segments_equal_one_engine(load_store: Callable[[str], Path | None], store: str) -> None:
    # LMDB is the only embedded store that two processes may open simultaneously.
    directory = load_store(store)
    limits: dict[str, Any] = {"clients": 3, "until": {"operations": 20_001}}
    with Trial(spec(store, directory, **limits)) as alone:
        expected = single_summary([*events(alone)])
    assert expected.operations == 20_001

    shares = [Trial(spec(store, directory, wait_for_start=True, segment={"k": k, "n": 2}, **limits)) for k in range(2)]
    start_ns = 0
    with shares[0], shares[1]:
        clients = {}
        for trial, event in follow_trials(*shares):
            match event:
                case Ready():
                    clients[shares.index(trial)] = event.clients
                    if len(clients) == len(shares):
                        start_ns = time.time_ns() + 500_000_000
                        for share in shares:
                            share.start_at(start_ns)
                case Interval():
                    assert event.unix_ns > start_ns > 0
    assert clients == {0: 2, 1: 1}
    summaries = [summary_of(share) for share in shares]
    assert [summary.operations for summary in summaries] == [10_001, 10_000]
    assert sum((counts(summary.outcomes) for summary in summaries), Counter()) == counts(expected.outcomes)
    assert all(abs(summary.start_unix_ns - start_ns) < 5e9 for summary in summaries)


def test_closed_stdin_ends_wait_for_start(program: Path) -> None:
    line = json.dumps(spec(wait_for_start=True)) + "\n"
    done = subprocess.run([program, "trial"], input=line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    assert error == "error: stdin was closed before start_at"
    assert hint.startswith("hint: ")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["end"], summary["operations"]) == ("failed", 0)


def test_a_start_in_the_past_is_refused(start: Start) -> None:
    # All operations would already be due.
    engine = start(wait_for_start=True, until={"operations": 100})
    assert isinstance(engine.next(), Ready)
    engine.say('{"start_at": 1}')
    code, events = engine.read_remaining()
    summary = single_summary(events)
    assert (code, summary.end, summary.operations) == (1, "failed", 0)
    assert "in the past" in str(summary.reason)


# Content of the events.


def test_a_warm_up_is_not_measured(start: Start) -> None:
    events = start(warmup_seconds=1, until={"operations": 5_000}).read_remaining()[1]
    summary = single_summary(events)
    assert summary.operations == 5_000
    assert summary.warmup_operations > 0


@pytest.mark.parametrize("arrival", ["uniform", "poisson"])
def test_every_due_operation_is_measured_or_reported(start: Start, arrival: str) -> None:
    def run(clients: int) -> Summary:
        pace = rate(2_000) | {"arrival": arrival}
        return single_summary(
            start(clients=clients, pace=pace, warmup_seconds=0.5, until={"seconds": 1.5}).read_remaining()[1]
        )

    # Two thousand clients claim the window's operations before the warm-up begins.
    few, many = run(2), run(2_000)
    assert few.due == many.due
    assert (few.due == 3_000) == (arrival == "uniform")
    for summary in (few, many):
        assert summary.operations > 0
        response_times(summary)


def response_times(summary: Summary) -> None:
    """Checks that every operation has a response time and both waits."""
    for outcome in summary.outcomes:
        assert outcome.response is not None
        assert decode_histogram(outcome.response).count == outcome.count
    assert summary.wait_client is not None
    assert summary.wait_generator is not None
    waits = decode_histogram(summary.wait_client).count, decode_histogram(summary.wait_generator).count
    assert waits == (summary.operations, summary.operations)


def test_operations_overdue_at_the_end_are_measured(start: Start) -> None:
    engine = start(clients=500, pace=rate(200), until={"seconds": 1}, interval_ms=100)
    while not isinstance(engine.next(), Interval):
        pass
    engine.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    engine.process.send_signal(signal.SIGCONT)
    summary = single_summary(engine.read_remaining()[1])
    # Each operation had a client that waited for its due time; operations not sent before the cut-off are reported.
    assert summary.due == summary.operations + summary.never_ended == 200
    response_times(summary)


def test_engine_pause_is_visible_and_leaves_the_window(start: Start) -> None:
    # The engine is stopped from the warm-up until after the window, so nothing is sent in the window.
    engine = start(warmup_seconds=1, until={"seconds": 0.5}, interval_ms=100)
    assert isinstance(engine.next(), Ready)
    time.sleep(0.2)
    engine.process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    engine.process.send_signal(signal.SIGCONT)
    summary = single_summary(engine.read_remaining()[1])
    assert (summary.measured_ns, summary.operations) == (500_000_000, 0)
    conductor = next(executor for executor in summary.executors if executor.name == "conductor")
    assert decode_histogram(conductor.lag).value_at_quantile(1) > 1.5e9


def test_a_closed_loop_has_no_response_times(start: Start) -> None:
    summary = single_summary(start(until={"operations": 1_000}).read_remaining()[1])
    assert {outcome.response for outcome in summary.outcomes} == {None}
    assert (summary.wait_client, summary.wait_generator, summary.due) == (None, None, None)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("pace", [{"mode": "closed"}, rate(3_000)])
def test_intervals_add_up_to_the_summary(
    start: Start, load_store: Callable[[str], Path | None], store: str, pace: dict[str, Any]
) -> None:
    directory = load_store(store)
    events = start(
        store, directory, pace=pace, warmup_seconds=0.5, until={"seconds": 2}, interval_ms=100
    ).read_remaining()[1]
    summary = single_summary(events)
    intervals = [event for event in events if isinstance(event, Interval)]
    assert len(intervals) > 2
    parts = check_sums(summary, intervals)
    # Operations that ended after the window are in no interval's completions. At a rate, at most the operations due in
    # the interval count; the excess consists of warm-up operations that ended in the interval.
    beyond = sum(part.completed for part in parts) - summary.completed
    assert 0 <= beyond <= (summary.carried.ended if pace["mode"] == "open" else 0)
    # Operations sent in the warm-up may end in an interval.
    ended = sum(part.ended for part in parts)
    assert summary.completed <= ended <= summary.operations + summary.warmup_operations
    if summary.due is not None:
        assert sum(interval.due or 0 for interval in intervals) == summary.due
    # The borders of intervals are computed, so intervals follow each other without gaps.
    assert [interval.k for interval in intervals] == list(range(len(intervals)))
    assert [interval.start_ns for interval in intervals] == [k * 100_000_000 for k in range(len(intervals))]
    assert {interval.length_ns for interval in intervals} == {100_000_000}
    assert {earlier.k < interval.k for interval in intervals for earlier in interval.earlier} <= {True}


def test_intervals_add_up_to_summary_after_idle_end(start: Start) -> None:
    # One operation is due immediately, and the next in a minute.
    engine = start(pace=rate(1 / 60), until={"seconds": 300})
    events = [engine.next() for _ in range(3)]
    engine.say('"stop"')
    events += engine.read_remaining()[1]
    assert add_histograms([event for event in events if isinstance(event, Interval)]) == add_histograms(
        [single_summary(events)]
    )


def test_window_has_the_requested_length(start: Start) -> None:
    for pace in ({"mode": "closed"}, rate(1_000)):
        summary = single_summary(start(pace=pace, warmup_seconds=0.5, until={"seconds": 1}).read_remaining()[1])
        borders = summary.borders
        assert (summary.measured_ns, borders.window_ns, borders.cutoff_ns) == (10**9, 10**9, 1_100_000_000)
        assert (borders.warmup_ns, borders.interval_ns) == (500_000_000, 10**9)
        assert summary.throughput == summary.completed


def test_engine_reports_its_threads_and_clock(start: Start) -> None:
    summary = single_summary(start(until={"seconds": 1}).read_remaining()[1])
    conductor = next(executor for executor in summary.executors if executor.name == "conductor")
    assert (conductor.clients, decode_histogram(conductor.lag).count > 0) == (0, True)
    assert all(executor.busy == pytest.approx(executor.cpu_ns / executor.wall_ns) for executor in summary.executors)
    assert summary.clock.source in ("tsc", "kernel")
    assert (summary.unclosed, summary.saturated_values) == (0, 0)


def test_a_spec_of_version_1_is_still_read(program: Path) -> None:
    old = {name: value for name, value in spec(until={"operations": 100}).items() if name != "work"}
    with Running(program, {**old, "spec": 1, "workload": work(type="core")}) as engine:
        assert single_summary(engine.read_remaining()[1]).operations == 100


def test_store_guarantees_are_reported_before_the_load(start: Start, tmp_path: Path) -> None:
    lmdb = {"name": "lmdb", "properties": {"lmdb.dir": str(tmp_path)}, "durability": "device"}
    engine = start(store=lmdb, phase="load", until={"operations": 10})
    ready = engine.next()
    assert isinstance(ready, Ready)
    assert (ready.store, ready.durability, ready.pid) == ("lmdb", "device", engine.process.pid)
    assert ready.facts["directory"] == str(tmp_path)
    assert ready.how
    assert ready.driver_ns > 0


def test_the_binary_under_test_is_a_release_build(start: Start) -> None:
    assert single_summary(start(until={"operations": 10}).read_remaining()[1]).profile == "release"


# Refused specs.


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no TrialSpec"),
        ("not JSON", "line 1 column 2"),
        ("[]", "TrialSpec"),
        (json.dumps(spec(cilents=2)), "unknown field `cilents`"),
        (json.dumps(spec(work=work(feildcount=2))), "unknown field `feildcount`"),
        (json.dumps(spec(spec=3)), "version 3, but this load generator reads"),
        (json.dumps(spec(spec=3, field_of_version_3=True)), "version 3, but this load generator reads"),
        (json.dumps(spec(clients=0)), "must be at least 1"),
        (json.dumps(spec(until={})), "never end"),
        (json.dumps(spec(store={"name": "rocksbd"})), 'no store "rocksbd"'),
        (json.dumps(spec(work=work(mix=dict.fromkeys(work()["mix"], 0)))), "above 0"),
    ],
)
def test_invalid_spec_is_refused_with_the_next_step(program: Path, line: str, message: str) -> None:
    result = subprocess.run([program, "trial"], input=f"{line}\n", capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (2, "")
    error, hint = result.stderr.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert hint.startswith("hint: ")


def test_run_without_data_fails_with_the_next_step(program: Path, tmp_path: Path) -> None:
    line = json.dumps(spec("lmdb", tmp_path / "nothing"))
    result = subprocess.run([program, "trial"], input=f"{line}\n", capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    error, hint = result.stderr.splitlines()
    assert error == f"error: no LMDB database in {tmp_path}/nothing"
    assert hint.startswith("hint: load one first: loadstone ycsb load lmdb")
