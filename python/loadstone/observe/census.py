"""A census: every process of the host at one moment, to tell ours, the kernel's and others' work apart.

It costs some 30 µs a process, so it is taken at the boundaries of a phase and not at each look.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, pids, text
from loadstone.observe.process import Process, bytes_of, stat

Key = tuple[int, int]
# The parent of all kernel threads. If it is not visible, we are in a container, or may not see others' processes.
KERNEL_PARENT = (2, "kthreadd")


@dataclass(frozen=True)
class Census:
    """Whose work was how much so far; keys are of processes."""

    # Ticks of the kernel's own threads: write-back, journals, encryption. Nobody's, if you ask who disturbed us.
    kernel: Mapping[Key, int]
    # Ticks of what descends from us and from the watched processes, these included, with what ended children left.
    family: Mapping[Key, int]
    # Those of the family whose parent is not: when one ends, a stranger inherits its counters.
    heads: frozenset[Key]
    # Bytes read from and written towards storage by the family and by everybody else; None where not all of the
    # host's processes can be seen and read.
    family_bytes: int | None
    others_bytes: int | None

    def kernel_ticks_since(self, before: Census) -> int:
        """Ticks of kernel threads since another census; those that ended in between are lost."""
        return gained(before.kernel, self.kernel)

    def relatives_ticks_since(self, before: Census, known: Iterable[Key]) -> int:
        """Ticks of the family without those processes that are `known` by themselves."""
        known = frozenset(known)
        return gained(before.family, {key: ticks for key, ticks in self.family.items() if key not in known})

    def bytes_since(self, before: Census) -> tuple[int, int] | None:
        """Bytes of the family and of others since another census; None where that cannot be said.

        A process that ended leaves its counters to the parent that waits for it. So the sums stay right where parent
        and child are both others, or both ours; otherwise they are too small for others, never too large.
        """
        numbers = (before.family_bytes, self.family_bytes, before.others_bytes, self.others_bytes)
        if None in numbers or any(head not in self.family for head in before.heads):
            return None
        family_before, family, others_before, others = (number or 0 for number in numbers)
        return max(family - family_before, 0), max(others - others_before, 0)


def gained(before: Mapping[Key, int], after: Mapping[Key, int]) -> int:
    """What counters by process have gained; who is new began at 0."""
    return sum(max(ticks - before.get(key, 0), 0) for key, ticks in after.items())


def census(watched: Iterable[int], proc: Path = PROC, us: int | None = None) -> Census:
    """Counts everybody. `us` is the lab's process, this one by default."""
    everybody = {found.pid: found for pid in pids(proc) if (found := stat(pid, proc))}
    us = os.getpid() if us is None else us
    family = {pid for pid in everybody if is_family(pid, everybody, {us, *watched})}
    kernel = {each.key: each.cpu_ticks for each in everybody.values() if each.kernel}
    head, _, tail = text(proc / "2/stat").partition(") ")
    sums: list[int | None] = [None, None]
    if tail and head == "{} ({}".format(*KERNEL_PARENT):
        strangers = [pid for pid, each in everybody.items() if pid not in family and not each.kernel]
        sums = [total_bytes(members, proc) for members in (family, strangers)]
    return Census(
        kernel=kernel,
        family={everybody[pid].key: everybody[pid].all_ticks for pid in family},
        heads=frozenset(everybody[pid].key for pid in family if pid != us and everybody[pid].parent not in family),
        family_bytes=sums[0],
        others_bytes=sums[1],
    )


def total_bytes(members: Iterable[int], proc: Path) -> int | None:
    """What processes read and wrote; None as soon as one that is there may not be read."""
    total = 0
    for pid in members:
        found = bytes_of(pid, proc)
        if found is not None:
            total += sum(found)
        elif stat(pid, proc) is not None:
            return None
    return total


def is_family(pid: int, everybody: Mapping[int, Process], roots: set[int]) -> bool:
    """Whether a process is one of the roots or descends from one."""
    seen: set[int] = set()
    while pid not in roots:
        # A tree that is read while it changes may have a circle.
        if pid in seen or pid not in everybody:
            return False
        seen.add(pid)
        pid = everybody[pid].parent
    return True
