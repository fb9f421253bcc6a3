"""What others did on this machine meanwhile: processors that a trial could not have (the check `interference`)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

# More than this share of the processors taken by others is worth a word.
OTHERS_MAX = 0.05
# Clocks tick a hundred times a second: below this many ticks of all processors a share says nothing.
TICKS_MIN = 100
# Columns of /proc/stat in which a processor has nothing to do: idle and iowait (proc(5)).
IDLE_COLUMNS = (3, 4)
# user, nice, system, idle, iowait, irq, softirq, steal; the two after them are counted in user and nice already.
COLUMNS = 8


@dataclass(frozen=True)
class Sample:
    """Clock ticks so far: of all processors, of these in use, and of them for us."""

    all: int
    used: int
    ours: int


@dataclass
class Bystander:
    """Looks at the machine while a process works; without /proc it sees nothing."""

    pid: int
    _samples: list[Sample] = field(default_factory=list)

    def look(self) -> None:
        """Takes a sample; the first and the last count."""
        try:
            ticks = [int(word) for word in Path("/proc/stat").read_text().split(maxsplit=COLUMNS + 1)[1 : COLUMNS + 1]]
            # Fields 14 and 15, counted from behind the program's name, which may hold anything.
            words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            return
        own = os.times()
        ours = int(words[11]) + int(words[12]) + round((own.user + own.system) * os.sysconf("SC_CLK_TCK"))
        used = sum(ticks) - sum(ticks[column] for column in IDLE_COLUMNS)
        self._samples = [*self._samples[:1], Sample(sum(ticks), used, ours)]

    @property
    def others(self) -> float | None:
        """The share of the processors that others took between the samples, what a hypervisor stole included.

        None where the system does not tell, or the time was too short to say.
        """
        if len(self._samples) < 2:
            return None
        first, last = self._samples
        ticks = last.all - first.all
        return max(last.used - first.used - (last.ours - first.ours), 0) / ticks if ticks >= TICKS_MIN else None
