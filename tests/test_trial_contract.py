"""The contract between the lab and the engine, kept by a real engine on real stores; and the lab's client of it."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import struct
import subprocess
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from loadstone import trial as trial_module
from loadstone.errors import LoadstoneError
from loadstone.event import BESIDE, Event, Interval, Note, Outcome, Ready, Summary, merged, parse
from loadstone.histogram import Histogram, decode
from loadstone.trial import EngineError, Spec, Trial, follow

RECORDS = 2_000
STORES = ("null", "lmdb", "rocksdb")
# Far longer than anything here takes on a machine that is busy with other things.
PATIENCE_SECONDS = 60.0


def spec(name: str = "null", directory: Path | None = None, **changes: Any) -> Spec:
    """A trial of workload A that lasts a minute, changed."""
    return {
        "spec": 1,
        "store": {"name": name, "properties": {f"{name}.dir": str(directory)} if directory else {}},
        "phase": "run",
        "workload": workload(),
        "clients": 2,
        "pace": {"mode": "closed"},
        "until": {"seconds": PATIENCE_SECONDS},
        "seed": 7,
        "sinks": [{"sink": "hdr_ns"}],
        "interval_ms": 1000,
        **changes,
    }


def workload(**changes: Any) -> dict[str, Any]:
    """YCSB's workload A, changed."""
    mix = {"read": 0.5, "update": 0.5, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}
    return {
        "type": "core",
        "table": "usertable",
        "records": RECORDS,
        "insert_start": 0,
        "insert_count": RECORDS,
        "field_count": 10,
        "field_name_prefix": "field",
        "field_length": {"distribution": "constant", "bytes": 100},
        "read_all_fields": True,
        "write_all_fields": False,
        "integrity": False,
        "mix": mix,
        "keys": {"distribution": "zipfian"},
        "insert_order": "hashed",
        "zero_padding": 1,
        "scan_length": {"distribution": "uniform", "min": 1, "max": 100},
        "operations": None,
        "insert_lag": 4,
        **changes,
    }


def rate(operations_per_second: float) -> dict[str, Any]:
    """A fixed rate."""
    piece = {"from": operations_per_second, "to": operations_per_second, "seconds": 1}
    return {"mode": "open", "rate": [piece], "arrival": "uniform"}


class Running:
    """An engine, spoken to line by line, as any lab might; killed when it outlives the test."""

    def __init__(self, program: Path, spec: Spec) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program, "trial"], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._watchdog = threading.Timer(2 * PATIENCE_SECONDS, self.process.kill)
        self._watchdog.start()
        self.say(json.dumps(spec))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            # What was not read yet cannot be written any more.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def say(self, line: str) -> None:
        """Writes a line."""
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """Closes its stdin."""
        assert self.process.stdin
        self.process.stdin.close()

    def next(self) -> Event:
        """The next event."""
        assert self.process.stdout
        return parse(self.process.stdout.readline())

    def rest(self) -> tuple[int, list[Event]]:
        """The exit code, and all events yet to come; the last one must be the only summary."""
        assert self.process.stdout
        assert self.process.stderr
        events = [parse(line) for line in self.process.stdout]
        assert self.process.stderr.read() == ""
        assert [isinstance(event, Summary) for event in events] == [False] * (len(events) - 1) + [True]
        return self.process.wait(), events


Start = Callable[..., Running]


@pytest.fixture(autouse=True)
def chosen(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client takes the engine that all tests take."""
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))


@pytest.fixture
def start(program: Path) -> Iterator[Start]:
    engines: list[Running] = []

    def started(*arguments: Any, **changes: Any) -> Running:
        engines.append(Running(program, spec(*arguments, **changes)))
        return engines[-1]

    yield started
    for engine in engines:
        engine.__exit__()


@pytest.fixture
def loaded(tmp_path: Path, chosen: None) -> Callable[[str], Path | None]:
    """Loads a store and returns its directory."""

    def load(store: str) -> Path | None:
        directory = None if store == "null" else tmp_path / store
        with Trial(spec(store, directory, phase="load", until={"operations": RECORDS}, settle=True)) as trial:
            assert [*trial.events()]
        summary = trial.record.result().summary
        assert (trial.status, summary.end, summary.succeeded) == (0, "done", RECORDS)
        return directory

    return load


def counts(outcomes: tuple[Outcome, ...]) -> Counter[tuple[str, str]]:
    """Operations by kind and status, as their histograms have it."""
    for outcome in outcomes:
        assert decode(outcome.service).count == outcome.count
    return Counter({(each.operation, each.status): each.count for each in outcomes if each.operation not in BESIDE})


def whole(events: list[Event]) -> Summary:
    """The summary, which must agree with itself."""
    summary = events[-1]
    assert isinstance(summary, Summary)
    done = counts(summary.outcomes)
    assert done.total() == summary.operations
    assert sum(n for (_, status), n in done.items() if status == "OK") == summary.succeeded
    return summary


# The lease.


@pytest.mark.parametrize("store", STORES)
def test_a_closed_stdin_ends_the_load_and_keeps_the_results(
    start: Start, loaded: Callable[[str], Path | None], store: str
) -> None:
    engine = start(store, loaded(store), lease_ms=20_000)
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    closed = time.monotonic()
    engine.hang_up()
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.reason) == (1, "lease", "stdin closed")
    assert summary.succeeded == summary.operations > 0
    # Neither the minute of the spec nor the 20 s of the lease.
    assert time.monotonic() - closed < 10
    assert 0.5e9 < summary.measured_ns < 15e9


def test_a_missing_heartbeat_ends_the_load_though_stdin_is_open(start: Start) -> None:
    engine = start(lease_ms=500)
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.reason) == (1, "lease", "no sign of life for 500 ms")
    assert summary.operations > 0
    assert summary.measured_ns < 20e9


def test_any_line_is_a_sign_of_life(start: Start) -> None:
    engine = start(lease_ms=1500, until={"seconds": 4}, interval_ms=10_000)
    for word in ('"heartbeat"', "", "not JSON", '{"unheard": "of"}') * 100:
        if engine.process.poll() is not None:
            break
        engine.say(word)
        time.sleep(0.1)
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.reason) == (0, "done", None)
    assert summary.measured_ns > 3e9


@pytest.mark.parametrize("waits", [{"warmup_seconds": 60}, {"wait_for_start": True}])
def test_a_lease_counts_before_anything_is_measured_too(start: Start, waits: dict[str, Any]) -> None:
    engine = start(lease_ms=500, **waits)
    code, events = engine.rest()
    assert (code, whole(events).end) == (1, "lease")


def test_a_lab_that_hangs_without_reading_loses_its_lease(start: Start) -> None:
    # An interval every 2 ms fills the pipe long before the lease is over.
    engine = start(lease_ms=2000, interval_ms=2, until={"seconds": 10})
    time.sleep(6)
    summary = whole(engine.rest()[1])
    assert summary.end == "lease"
    assert summary.measured_ns < 5e9


# Control lines and signals.


@pytest.mark.parametrize("store", STORES)
def test_stop_ends_the_load_well(start: Start, loaded: Callable[[str], Path | None], store: str) -> None:
    engine = start(store, loaded(store))
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    engine.say('"stop"')
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.reason) == (0, "stopped", "control line")
    assert summary.operations > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_load_and_keeps_the_results(start: Start, number: signal.Signals) -> None:
    engine = start()
    assert isinstance(engine.next(), Ready)
    assert isinstance(engine.next(), Interval)
    engine.process.send_signal(number)
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.reason) == (130, "stopped", "interrupted")
    assert summary.operations > 0


def test_nothing_is_said_of_what_was_never_measured(start: Start) -> None:
    engine = start(wait_for_start=True)
    assert isinstance(engine.next(), Ready)
    engine.say('"stop"')
    code, events = engine.rest()
    summary = whole(events)
    assert (code, summary.end, summary.operations, summary.warmup_operations) == (0, "stopped", 0, 0)


def test_no_note_is_made_of_what_was_never_measured(start: Start) -> None:
    engine = start(warmup_seconds=60)
    assert isinstance(engine.next(), Ready)
    time.sleep(1)
    engine.say('"stop"')
    assert not [event for event in engine.rest()[1] if isinstance(event, Note)]


def test_a_stop_before_the_start_is_heeded_at_once(start: Start) -> None:
    engine = start(wait_for_start=True)
    assert isinstance(engine.next(), Ready)
    engine.say(json.dumps({"start_at": time.time_ns() + 60 * 10**9}))
    time.sleep(0.5)
    stopped = time.monotonic()
    engine.say('"stop"')
    assert engine.rest()[0] == 0
    assert time.monotonic() - stopped < 4


# Segments.


@pytest.mark.parametrize("store", ["null", "lmdb"])
def test_two_segments_from_one_barrier_do_what_one_engine_does(
    loaded: Callable[[str], Path | None], store: str
) -> None:
    # LMDB is the one of our embedded stores that two processes may have open at once.
    directory = loaded(store)
    limits: dict[str, Any] = {"clients": 3, "until": {"operations": 20_001}}
    with Trial(spec(store, directory, **limits)) as alone:
        expected = whole([*alone.events()])
    assert expected.operations == 20_001

    shares = [Trial(spec(store, directory, wait_for_start=True, segment={"k": k, "n": 2}, **limits)) for k in range(2)]
    start_ns = 0
    with shares[0], shares[1]:
        ready = 0
        for _, event in follow(*shares):
            match event:
                case Ready():
                    ready += 1
                    if ready == len(shares):
                        start_ns = time.time_ns() + 500_000_000
                        for share in shares:
                            share.start_at(start_ns)
                case Interval():
                    assert event.unix_ns > start_ns > 0
    results = [share.record.result() for share in shares]
    assert [result.ready.clients for result in results] == [2, 1]
    assert [result.summary.operations for result in results] == [10_001, 10_000]
    assert sum((counts(result.summary.outcomes) for result in results), Counter()) == counts(expected.outcomes)
    assert all(abs(result.summary.start_unix_ns - start_ns) < 5e9 for result in results)


def test_a_start_in_the_past_is_now(start: Start) -> None:
    engine = start(wait_for_start=True, until={"operations": 100})
    assert isinstance(engine.next(), Ready)
    engine.say('{"start_at": 1}')
    code, events = engine.rest()
    assert (code, whole(events).operations) == (0, 100)


# What is measured.


def test_a_warm_up_is_not_measured(start: Start) -> None:
    events = start(warmup_seconds=1, until={"operations": 5_000}).rest()[1]
    summary = whole(events)
    assert summary.operations == 5_000
    assert summary.warmup_operations > 0


@pytest.mark.parametrize("arrival", ["uniform", "poisson"])
def test_a_rate_gives_response_times_and_as_many_operations_as_were_due(start: Start, arrival: str) -> None:
    pace = rate(2_000) | {"arrival": arrival}
    events = start(pace=pace, warmup_seconds=1, until={"seconds": 3}).rest()[1]
    summary = whole(events)
    # Within what is due in one interval.
    assert 4_000 <= summary.operations <= 8_000
    assert summary.unsent <= 2_000
    for outcome in summary.outcomes:
        assert outcome.response is not None
        assert decode(outcome.response).count == outcome.count
    assert summary.wait_client is not None
    assert summary.wait_generator is not None
    waits = decode(summary.wait_client).count, decode(summary.wait_generator).count
    assert waits == (summary.operations, summary.operations)
    if arrival == "uniform":
        assert summary.operations + summary.unsent == pytest.approx(6_000, abs=2_000)


def test_a_closed_loop_has_no_response_times(start: Start) -> None:
    summary = whole(start(until={"operations": 1_000}).rest()[1])
    assert {outcome.response for outcome in summary.outcomes} == {None}
    assert (summary.wait_client, summary.wait_generator) == (None, None)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("pace", [{"mode": "closed"}, rate(3_000)])
def test_intervals_add_up_to_the_summary(
    start: Start, loaded: Callable[[str], Path | None], store: str, pace: dict[str, Any]
) -> None:
    directory = loaded(store)
    events = start(store, directory, pace=pace, warmup_seconds=0.5, until={"seconds": 2}, interval_ms=100).rest()[1]
    summary = whole(events)
    intervals = [event for event in events if isinstance(event, Interval)]
    assert len(intervals) > 2
    assert sum(interval.operations for interval in intervals) == summary.operations
    assert sum(interval.succeeded for interval in intervals) == summary.succeeded
    assert added(intervals) == added([summary])
    # They follow each other without a gap.
    ends = [0, *(interval.start_ns + interval.length_ns for interval in intervals)]
    assert [interval.start_ns for interval in intervals] == ends[:-1]


def test_intervals_add_up_to_the_summary_when_the_last_is_idle(start: Start) -> None:
    # One operation at once, the next one due in a minute.
    engine = start(pace=rate(1 / 60), until={"seconds": 300})
    events = [engine.next() for _ in range(3)]
    engine.say('"stop"')
    events += engine.rest()[1]
    assert added([event for event in events if isinstance(event, Interval)]) == added([whole(events)])


def added(parts: list[Interval] | list[Summary]) -> dict[tuple[str, str, str], Histogram]:
    """All histograms of intervals or summaries, by operation, status and what they are of."""
    sums: dict[tuple[str, str, str], Histogram] = {}
    for part in parts:
        for outcome in part.outcomes:
            for name, text in (("service", outcome.service), ("response", outcome.response)):
                if text is not None:
                    sums.setdefault((outcome.operation, outcome.status, name), Histogram()).add(decode(text))
    return sums


def test_what_a_store_keeps_is_told_before_the_load(start: Start, tmp_path: Path) -> None:
    lmdb = {"name": "lmdb", "properties": {"lmdb.dir": str(tmp_path)}, "durability": "device"}
    engine = start(store=lmdb, phase="load", until={"operations": 10})
    ready = engine.next()
    assert isinstance(ready, Ready)
    assert (ready.store, ready.durability, ready.pid) == ("lmdb", "device", engine.process.pid)
    assert ready.facts["directory"] == str(tmp_path)
    assert ready.how
    assert ready.driver_ns > 0


def test_the_binary_under_test_is_a_release_build(start: Start) -> None:
    assert whole(start(until={"operations": 10}).rest()[1]).profile == "release"


# Specs that are refused.


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no TrialSpec"),
        ("not JSON", "line 1 column 2"),
        ("[]", "TrialSpec"),
        (json.dumps(spec(cilents=2)), "unknown field `cilents`"),
        (json.dumps(spec(workload=workload(feildcount=2))), "unknown field `feildcount`"),
        (json.dumps(spec(spec=2)), "version 2, this engine reads 1"),
        (json.dumps(spec(spec=2, field_of_version_2=True)), "version 2, this engine reads 1"),
        (json.dumps(spec(clients=0)), "must be at least 1"),
        (json.dumps(spec(until={})), "never end"),
        (json.dumps(spec(store={"name": "rocksbd"})), 'no store "rocksbd"'),
        (json.dumps(spec(workload=workload(mix=dict.fromkeys(workload()["mix"], 0)))), "above 0"),
    ],
)
def test_a_bad_spec_is_refused_with_the_next_step(program: Path, line: str, words: str) -> None:
    told = subprocess.run([program, "trial"], input=f"{line}\n", capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout) == (2, "")
    error, hint = told.stderr.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert hint.startswith("hint: ")


def test_a_run_without_data_fails_with_the_next_step(program: Path, tmp_path: Path) -> None:
    line = json.dumps(spec("lmdb", tmp_path / "nothing"))
    told = subprocess.run([program, "trial"], input=f"{line}\n", capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout) == (1, "")
    error, hint = told.stderr.splitlines()
    assert error == f"error: no LMDB database in {tmp_path}/nothing"
    assert hint.startswith("hint: load one first: loadstone ycsb load lmdb")


# The lab's client.


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in the engine's place."""

    def place(script: str) -> None:
        program = tmp_path / "stand-in"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("LOADSTONE_ENGINE", str(program))

    return place


def gone(pid: int) -> bool:
    """Whether there is no such process, not even a dead one that nobody has asked for."""
    return not Path(f"/proc/{pid}").exists()


def test_the_client_beats_by_itself_and_leaves_no_thread_and_no_process() -> None:
    threads = threading.active_count()
    with Trial(spec(lease_ms=2_000, until={"seconds": 6})) as trial:
        kinds = [type(event) for event in trial.events()]
        assert threading.active_count() == threads
    assert (kinds[0], kinds[1], kinds[-1]) == (Ready, Interval, Summary)
    assert trial.record.result().summary.end == "done"
    assert (trial.status, gone(trial.pid)) == (0, True)


def test_the_client_stops_a_trial_and_gets_its_summary() -> None:
    with Trial(spec()) as trial:
        for event in trial.events():
            if isinstance(event, Interval):
                trial.stop()
    assert (trial.status, trial.record.result().summary.end) == (0, "stopped")


def test_an_exception_in_the_lab_ends_the_engine() -> None:
    trial = Trial(spec())

    def lab() -> None:
        with trial:
            for event in trial.events():
                if isinstance(event, Interval):
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab()
    assert trial.status == 1
    assert gone(trial.pid)


def test_an_engine_with_a_full_pipe_is_ended_too() -> None:
    with Trial(spec(interval_ms=2)) as trial:
        time.sleep(3)
        left = time.monotonic()
    assert time.monotonic() - left < trial_module.GRACE_SECONDS
    assert trial.status == 1
    assert gone(trial.pid)


def test_a_lab_that_hangs_loses_its_lease() -> None:
    with Trial(spec(lease_ms=500)) as trial:
        time.sleep(4)
        assert [*trial.events()]
    assert (trial.status, trial.record.result().summary.end) == (1, "lease")


def test_an_engine_that_does_not_go_is_killed(stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "GRACE_SECONDS", 0.5)
    stand_in("trap '' INT TERM\nwhile :; do sleep 0.1; done")
    with Trial(spec()) as trial:
        pass
    assert trial.status == -signal.SIGKILL
    assert gone(trial.pid)


@pytest.mark.parametrize(
    ("script", "message", "hint", "status"),
    [
        (
            "echo 'error: no jar' >&2; echo 'hint: make rocksdb' >&2; exit 1",
            "no jar",
            "make rocksdb",
            1,
        ),
        ("read spec; echo 'error: odd' >&2; exit 2", "odd", "the message above is the engine's", 2),
        ("kill -SEGV $$", "the engine was ended by SIGSEGV", "it said nothing", -signal.SIGSEGV),
        (
            "echo log >&2; kill -KILL $$",
            "the engine was ended by SIGKILL",
            "its last words: log; the kernel's log (dmesg) tells of a lack of memory",
            -signal.SIGKILL,
        ),
        ("exit 0", "the engine ended without a result, exit status 0", "it said nothing", 0),
        (
            "echo rubbish; exec sleep 60",
            "the engine wrote what is no event: Expecting value: line 1 column 1 (char 0): rubbish",
            "use the loadstone and loadstone-engine of one installation",
            1,
        ),
        (
            """echo '{"event": "ready"}'; exec sleep 60""",
            'the engine wrote what is no event: it has no `events`: {"event": "ready"}',
            "use the loadstone and loadstone-engine of one installation",
            1,
        ),
    ],
)
def test_a_failed_engine_is_an_error_in_its_own_words(
    stand_in: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    message: str,
    hint: str,
    status: int,
) -> None:
    monkeypatch.setattr(trial_module, "GRACE_SECONDS", 1)
    stand_in(script)
    with Trial(spec()) as trial, pytest.raises(EngineError) as caught:
        assert [*trial.events()]
    assert (str(caught.value), caught.value.status) == (f"error: {message}\nhint: {hint}", status)
    assert gone(trial.pid)


def test_a_refused_spec_is_an_error_in_the_engines_words() -> None:
    with Trial(spec(clients=0)) as trial, pytest.raises(EngineError, match="must be at least 1, got 0") as caught:
        assert [*trial.events()]
    assert caught.value.status == 2
    assert caught.value.hint


def test_an_engine_that_cannot_be_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x7fELF, but not of here")
    program.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))
    with pytest.raises(LoadstoneError, match="Exec format error"):
        Trial(spec())


def test_the_engines_log_is_kept(stand_in: Callable[[str], None]) -> None:
    stand_in("echo one >&2; printf 'error: two\\nhint: three' >&2; exit 1")
    with Trial(spec()) as trial, pytest.raises(EngineError, match="two"):
        assert [*trial.events()]
    assert [*trial.log] == ["one", "error: two", "hint: three"]


# Histograms.

# Made by the package hdrhistogram 0.10.8, of the values below, of which 5,000 a thousand and 10^11 2^40 times.
OF_ANOTHER_LIBRARY = "HISTFAAAADt4nJNpmSzMwMAgwwABzFCaEch0M9ixgMH+A0SAiemnPBPTX36mg8wX+E97MV08z8i0O7MBBBwAVH4O1g=="
VALUES = (0, 1, 2_047, 2_048, 4_096, *[5_000] * 1_000, 123_456, 10**9)


def test_a_histogram_of_another_library_is_read() -> None:
    histogram = decode(OF_ANOTHER_LIBRARY)
    assert histogram.count == len(VALUES) + 2**40
    # The ends of the buckets that the values lie in, at three digits.
    ends = [0, 1, 2_047, 2_049, 4_099, 5_003, 123_519, 1_000_341_503]
    assert [histogram.layout.highest_equivalent(index) for index in sorted(histogram.counts)][:-1] == ends
    assert histogram.quantile(1) == histogram.quantile(0.5) == 100_059_316_223


def test_a_quantile_is_of_the_rank_rounded_up() -> None:
    histogram = Histogram(counts=Counter(dict.fromkeys(range(1_000), 1)))
    assert [histogram.quantile(share) for share in (0, 0.0005, 0.5, 0.95, 0.99, 0.999, 1)] == [
        0,
        0,
        499,
        949,
        989,
        998,
        999,
    ]
    with pytest.raises(ValueError, match="empty"):
        Histogram().quantile(0.5)
    with pytest.raises(ValueError, match="share between 0 and 1"):
        histogram.quantile(1.5)


def test_a_quantile_needs_ten_values_above_it() -> None:
    histogram = Histogram(counts=Counter({5: 1_000}))
    assert [histogram.supports(share) for share in (0.5, 0.99, 0.991, 0.999)] == [True, True, False, False]


@pytest.mark.parametrize("damage", ["", "HIST", "====", "!!!", base64.b64encode(b"\x1c\x84\x93\x13" * 20).decode()])
def test_a_damaged_histogram_is_refused(damage: str) -> None:
    with pytest.raises(ValueError, match="not an HDR histogram"):
        decode(damage)


def test_bare_and_deflated_histograms_are_the_same() -> None:
    deflated = base64.b64decode(OF_ANOTHER_LIBRARY)
    bare = zlib.decompress(deflated[8:])
    assert decode(base64.b64encode(bare).decode()) == decode(OF_ANOTHER_LIBRARY)
    with pytest.raises(ValueError, match="not an HDR histogram of ours: 16 of 17 bytes"):
        decode(base64.b64encode(bare[:4] + struct.pack(">i", 17) + bare[8:56]).decode())


def test_operations_are_merged_by_kind_or_all_together() -> None:
    outcomes = tuple(
        Outcome(operation, status, 0, OF_ANOTHER_LIBRARY)
        for operation, status in (("READ", "OK"), ("READ", "NOT_FOUND"), ("UPDATE", "OK"), ("CLEANUP", "OK"))
    )
    one = decode(OF_ANOTHER_LIBRARY).count
    assert merged(outcomes, "READ").count == one
    assert merged(outcomes).count == 2 * one
    assert merged(outcomes, "SCAN").count == 0
