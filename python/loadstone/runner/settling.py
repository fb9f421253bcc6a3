"""Waits until servers are idle after a load, and until they have replicated all writes before a read-back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.server_usage import Watched, sum_ticks

# Servers are idle if they together use fewer processors than this in an interval. Ten idle JVMs of HBase and HDFS use
# less; a compaction uses a whole processor.
PROCESSORS = 0.25
SAMPLE_S = 1.0
# The maximum wait for busy servers.
LONGEST_S = 300.0


@dataclass(frozen=True, slots=True)
class Replicated:
    """The duration of the wait for replication, and the backlog at its end."""

    seconds: float
    backlog: str | None


@dataclass(frozen=True, slots=True)
class Waited:
    """The duration of the wait, and whether the servers became idle."""

    seconds: float
    idle: bool


def await_replication(
    find_backlog: Callable[[], str | None],
    clear_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Replicated:
    """Waits until the servers have had no backlog, such as hints to deliver, for `clear_s` seconds."""
    begin = busy = clock()
    while True:
        backlog = find_backlog()
        now = clock()
        if backlog is not None:
            busy = now
        if (backlog is None and now - busy >= clear_s) or now - begin >= LONGEST_S:
            return Replicated(now - begin, backlog)
        sleep(SAMPLE_S)


def wait(
    servers: Sequence[Watched],
    read_usage: Callable[[Sequence[Watched]], int] = sum_ticks,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Waited:
    """Waits until the servers are idle; servers that have exited count as idle."""
    begin = before = clock()
    used = read_usage(servers)
    while before - begin < LONGEST_S:
        sleep(SAMPLE_S)
        now, then = clock(), used
        used = read_usage(servers)
        if used - then < PROCESSORS * TICKS_PER_SECOND * (now - before):
            return Waited(now - begin, idle=True)
        before = now
    return Waited(before - begin, idle=False)
