"""Programs that stay for more than one question: here of Python, as they need not be Java's."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from loadstone.systems.base.java_helper import Resident, ResidentError, SilentError

# Says its process and what it was asked; one word ends it, another one makes it silent.
PROGRAM = """
import os, sys, time
print("no answer this", file=sys.stderr)
for line in sys.stdin:
    word = line.strip()
    if word == "end":
        sys.exit("words of farewell")
    if word == "sleep":
        time.sleep(60)
    print(os.getpid(), word, flush=True)
"""
ARGV = [sys.executable, "-c", PROGRAM]


@pytest.fixture
def resident() -> Iterator[Resident]:
    one = Resident()
    yield one
    one.end_program()


def asked(resident: Resident, word: str, *more: str) -> tuple[int, str]:
    """Which process answered, and what."""
    pid, _, answer = resident.ask_program([*ARGV, *more], word, 10).partition(" ")
    return int(pid), answer


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_answers_all_questions(resident: Resident) -> None:
    first, answer = asked(resident, "one")
    assert answer == "one"
    assert asked(resident, "größer, with spaces\tand tabs") == (first, "größer, with spaces\tand tabs")


def test_an_answer_may_be_long(resident: Resident) -> None:
    assert asked(resident, "x" * 1_000_000)[1] == "x" * 1_000_000


def test_another_program_takes_its_place(resident: Resident) -> None:
    first, _ = asked(resident, "one")
    second, answer = asked(resident, "two", "other")
    assert second != first
    assert answer == "two"
    assert not alive(first)


def test_ended_helper_leaves_its_reason_and_is_restarted(resident: Resident) -> None:
    with pytest.raises(ResidentError, match="words of farewell"):
        asked(resident, "end")
    assert asked(resident, "one")[1] == "one"


def test_a_killed_program_is_started_again(resident: Resident) -> None:
    first, _ = asked(resident, "one")
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    second, _ = asked(resident, "two")
    assert second != first


def test_unresponsive_helper_is_killed(resident: Resident) -> None:
    first, _ = asked(resident, "one")
    with pytest.raises(SilentError):
        resident.ask_program(ARGV, "sleep", 0.2)
    assert not alive(first)
    assert asked(resident, "two")[1] == "two"


def test_nothing_is_left(resident: Resident) -> None:
    first, _ = asked(resident, "one")
    resident.end_program()
    resident.end_program()
    assert not alive(first)
