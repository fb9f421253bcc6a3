"""Helper processes that answer several requests: Python programs here, because a helper need not be a Java program."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from lab_support import is_running
from loadstone.systems.base.java_helper import Resident, ResidentError, SilentError

# A helper that answers with its pid and the request; the request `end` ends it, `sleep` makes it silent.
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
    helper = Resident()
    yield helper
    helper.end_program()


def ask_helper(resident: Resident, word: str, *more: str) -> tuple[int, str]:
    """The process that answered, and its answer."""
    pid, _, answer = resident.ask_program([*ARGV, *more], word, 10).partition(" ")
    return int(pid), answer


def test_one_process_answers_all_questions(resident: Resident) -> None:
    first, answer = ask_helper(resident, "one")
    assert answer == "one"
    assert ask_helper(resident, "größer, with spaces\tand tabs") == (first, "größer, with spaces\tand tabs")


def test_an_answer_may_be_long(resident: Resident) -> None:
    assert ask_helper(resident, "x" * 1_000_000)[1] == "x" * 1_000_000


def test_another_program_takes_its_place(resident: Resident) -> None:
    first, _ = ask_helper(resident, "one")
    second, answer = ask_helper(resident, "two", "other")
    assert second != first
    assert answer == "two"
    assert not is_running(first)


def test_ended_helper_leaves_its_reason_and_is_restarted(resident: Resident) -> None:
    with pytest.raises(ResidentError, match="words of farewell"):
        ask_helper(resident, "end")
    assert ask_helper(resident, "one")[1] == "one"


def test_a_killed_program_is_started_again(resident: Resident) -> None:
    first, _ = ask_helper(resident, "one")
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    second, _ = ask_helper(resident, "two")
    assert second != first


def test_unresponsive_helper_is_killed(resident: Resident) -> None:
    first, _ = ask_helper(resident, "one")
    with pytest.raises(SilentError):
        resident.ask_program(ARGV, "sleep", 0.2)
    assert not is_running(first)
    assert ask_helper(resident, "two")[1] == "two"


def test_nothing_is_left(resident: Resident) -> None:
    first, _ = ask_helper(resident, "one")
    resident.end_program()
    resident.end_program()
    assert not is_running(first)
