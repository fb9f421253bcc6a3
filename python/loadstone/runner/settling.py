"""Waits until servers are idle: the flushes and compactions that a load has left are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.servers import Watched, ticks

# All together use less than this for this long. The ten JVMs of HBase over HDFS do when they have nothing to do; a
# single compaction uses a processor.
PROCESSORS = 0.25
LOOK_S = 1.0
# Servers that are still busy by then are not waited for.
LONGEST_S = 300.0


@dataclass(frozen=True, slots=True)
class Waited:
    """How long that took, and whether they were idle in the end."""

    seconds: float
    idle: bool


def wait(
    servers: Sequence[Watched],
    look: Callable[[Sequence[Watched]], int] = ticks,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Waited:
    """Waits until the servers are idle; those that have ended count as idle."""
    begin = before = clock()
    used = look(servers)
    while before - begin < LONGEST_S:
        sleep(LOOK_S)
        now, then = clock(), used
        used = look(servers)
        if used - then < PROCESSORS * TICKS_PER_SECOND * (now - before):
            return Waited(now - begin, idle=True)
        before = now
    return Waited(before - begin, idle=False)
