"""Mounts: which file system a directory is on, by /proc/self/mountinfo (proc(5))."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, text

ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo: `number` is `major:minor`, `root` what part of the file system is mounted at `point`."""

    number: str
    root: str
    point: str
    type: str
    source: str
    # The mount's own options and those of the file system (`upperdir=…`, `data=ordered`).
    options: tuple[str, ...]
    super_options: tuple[str, ...]


def mounts(proc: Path = PROC) -> list[Mount]:
    """All mounts that this process sees, in their order; none where the system does not tell."""
    found = []
    for line in text(proc / "self/mountinfo").splitlines():
        # Between the sixth field and the dash stand any number of tags.
        head, dash, tail = line.partition(" - ")
        left, right = head.split(), tail.split(" ")
        if dash and len(left) >= 6 and len(right) >= 2:
            options = tuple(unescaped(option) for option in right[-1].split(",")) if len(right) > 2 else ()
            paths = (unescaped(left[3]), unescaped(left[4]))
            found.append(Mount(left[2], *paths, right[0], unescaped(right[1]), tuple(left[5].split(",")), options))
    return found


def mount_of(directory: Path, proc: Path = PROC) -> Mount | None:
    """The mount that a directory is on, or will be once it is made."""
    path = os.path.realpath(directory)
    best: Mount | None = None
    for mount in mounts(proc):
        # Of several mounts at one point the last one hides the others.
        if is_within(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_within(path: str, point: str) -> bool:
    """Whether a path is a mount point or below it."""
    return path == point or path.startswith(point.rstrip("/") + "/")


def unescaped(word: str) -> str:
    """A word of mountinfo: space, tab, newline and backslash are written in octal."""
    return ESCAPE.sub(lambda found: chr(int(found[1], 8)), word)
