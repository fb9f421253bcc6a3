"""The lab's client starts and stops engines, reads their events, and reports their failures."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadstone.engine import trial as trial_module
from loadstone.engine.events import Interval, Ready, Summary
from loadstone.engine.trial import EngineError, Trial
from loadstone.errors import LoadstoneError
from trial_support import events, spec, summary_of

pytestmark = pytest.mark.usefixtures("engine_variable")

# The lab's client.


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in place of the engine."""

    def place(script: str) -> None:
        program = tmp_path / "stand-in"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("LOADSTONE_ENGINE", str(program))

    return place


def has_ended(pid: int) -> bool:
    """Whether a process no longer exists, not even as a zombie."""
    return not Path(f"/proc/{pid}").exists()


def test_client_sends_heartbeats_and_leaves_no_process() -> None:
    threads = threading.active_count()
    with Trial(spec(lease_ms=4_000, until={"seconds": 10})) as trial:
        kinds = [type(event) for event in events(trial)]
        assert threading.active_count() == threads
    assert (kinds[0], kinds[1], kinds[-1]) == (Ready, Interval, Summary)
    assert summary_of(trial).end == "done"
    assert (trial.status, has_ended(trial.pid)) == (0, True)


def test_client_stops_a_trial_and_gets_its_summary() -> None:
    with Trial(spec()) as trial:
        for event in events(trial):
            if isinstance(event, Interval):
                trial._send_line('"stop"')
    assert (trial.status, summary_of(trial).end) == (0, "stopped")


def test_an_exception_in_the_lab_ends_the_engine() -> None:
    trial = Trial(spec())

    def lab() -> None:
        with trial:
            for event in events(trial):
                if isinstance(event, Interval):
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab()
    assert trial.status == 1
    assert has_ended(trial.pid)


def test_engine_with_a_full_pipe_is_ended() -> None:
    with Trial(spec(interval_ms=2)) as trial:
        time.sleep(3)
        left = time.monotonic()
    assert time.monotonic() - left < trial_module.GRACE_SECONDS
    assert trial.status == 1
    assert has_ended(trial.pid)


def test_a_lab_that_hangs_loses_its_lease() -> None:
    with Trial(spec(lease_ms=500)) as trial:
        time.sleep(4)
        assert [*events(trial)]
    assert (trial.status, summary_of(trial).end) == (1, "lease")


def test_an_engine_that_does_not_go_is_killed(stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "GRACE_SECONDS", 0.5)
    stand_in("trap '' INT TERM\nwhile :; do sleep 0.1; done")
    with Trial(spec()) as trial:
        pass
    assert trial.status == -signal.SIGKILL
    assert has_ended(trial.pid)


@pytest.mark.parametrize(
    ("script", "message", "hint", "status"),
    [
        (
            "echo 'error: no jar' >&2; echo 'hint: make rocksdb' >&2; exit 1",
            "no jar",
            "make rocksdb",
            1,
        ),
        ("read spec; echo 'error: odd' >&2; exit 2", "odd", "the message above comes from the load generator", 2),
        ("kill -SEGV $$", "the load generator was killed by SIGSEGV", "its log is empty", -signal.SIGSEGV),
        (
            "echo log >&2; kill -KILL $$",
            "the load generator was killed by SIGKILL",
            "last line of its log: log; the kernel log (dmesg) shows whether memory ran out",
            -signal.SIGKILL,
        ),
        ("exit 0", "the load generator exited without a result, with status 0", "its log is empty", 0),
        (
            "echo rubbish; exec sleep 60",
            "the load generator wrote an invalid event: Expecting value: line 1 column 1 (char 0): rubbish",
            "use loadstone and loadstone-engine from the same installation",
            1,
        ),
        (
            """echo '{"event": "ready"}'; exec sleep 60""",
            'the load generator wrote an invalid event: it has no `events`: {"event": "ready"}',
            "use loadstone and loadstone-engine from the same installation",
            1,
        ),
    ],
)
def test_failed_engine_is_an_error_with_its_message(
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
        assert [*events(trial)]
    assert (str(caught.value), caught.value.status) == (f"error: {message}\nhint: {hint}", status)
    assert has_ended(trial.pid)


def test_refused_spec_is_an_error_with_its_message() -> None:
    with Trial(spec(clients=0)) as trial, pytest.raises(EngineError, match="must be at least 1, got 0") as caught:
        assert [*events(trial)]
    assert caught.value.status == 2
    assert caught.value.hint


def test_unusable_engine_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x7fELF, but not of here")
    program.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(program))
    with pytest.raises(LoadstoneError, match="Exec format error"):
        Trial(spec())


def test_the_engines_log_is_kept(stand_in: Callable[[str], None]) -> None:
    stand_in("echo one >&2; printf 'error: two\\nhint: three' >&2; exit 1")
    with Trial(spec()) as trial, pytest.raises(EngineError, match="two"):
        assert [*events(trial)]
    assert [*trial.log] == ["one", "error: two", "hint: three"]
