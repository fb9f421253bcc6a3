"""Takes all processors away now and then, as a hypervisor does to its guests. For root, until it is ended.

Every 2 to 14 seconds: for 0.1 to 0.3 s mostly, for up to 0.8 s three times in ten, and for up to 1.7 s once. Tests that
run beside it show which of their bounds are the machine's. The kernel leaves 5 % of each second to others unless
`/proc/sys/kernel/sched_rt_runtime_us` is -1.
"""

from __future__ import annotations

import os
import random
import time


def stall(processor: int, begin: float, main: int) -> None:
    """Burns a processor now and then, as long as the main process is there.

    Everybody does it at the same moments, which follow from when they began.
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
    """One process for each processor."""
    first, *others = sorted(os.sched_getaffinity(0))
    begin, pid = time.monotonic(), os.getpid()
    for processor in others:
        if os.fork() == 0:
            stall(processor, begin, pid)
            return
    stall(first, begin, pid)


if __name__ == "__main__":
    main()
