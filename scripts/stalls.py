"""Takes all processors away at random times, as a hypervisor does to its guests. Requires root; runs until killed.

A stall begins 2 to 14 s after the previous stall. It lasts 0.1 to 0.3 s in 60 % of the cases, up to 0.8 s in 30 %, and
up to 1.7 s in 10 %. Tests that run during stalls show which of their bounds depend on the machine. The kernel reserves
5 % of each second unless `/proc/sys/kernel/sched_rt_runtime_us` is -1.
"""

from __future__ import annotations

import os
import random
import time


def stall(processor: int, begin: float, main: int) -> None:
    """Keeps a processor busy at random times, as long as the main process runs.

    All processes use the same times, which follow from the common start.
    """
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
    dice = random.Random(begin)
    at = begin
    while main in (os.getpid(), os.getppid()):
        at += dice.uniform(2, 14)
        (longest,) = dice.choices([(0.1, 0.3), (0.3, 0.8), (0.8, 1.7)], [6, 3, 1])
        end = at + dice.uniform(*longest)
        time.sleep(max(at - time.monotonic(), 0))
        while time.monotonic() < end:
            pass
        at = end


def main() -> None:
    """Starts one process per processor."""
    first, *cores = sorted(os.sched_getaffinity(0))
    begin, pid = time.monotonic(), os.getpid()
    for processor in cores:
        if os.fork() == 0:
            stall(processor, begin, pid)
            return
    stall(first, begin, pid)


if __name__ == "__main__":
    main()
