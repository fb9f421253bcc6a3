"""Control groups (v2 or v1): the share of the host that this process may use (the kernel's admin-guide)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.device import is_within, list_mounts
from loadstone.observe.kernel_file import PROC, parse_fields, parse_whole, read_number, read_text

CONTROLLERS = ("cpu", "memory", "pids", "blkio")
# v1 represents "no limit" by the largest multiple of a page below 2⁶³.
UNLIMITED = 1 << 62


@dataclass(frozen=True)
class ControlGroup:
    """The directories of this process's control group and its ancestors, up to the outermost visible ancestor."""

    # The directories for each controller; in v2, all controllers have the same directories.
    cpu: tuple[Path, ...] = ()
    memory: tuple[Path, ...] = ()
    pids: tuple[Path, ...] = ()
    # The controller `blkio` of v1 is named `io` in v2.
    blkio: tuple[Path, ...] = ()

    @property
    def processors(self) -> float | None:
        """The number of processors that the group may use at the same time; None if there is no limit.

        The tightest limit of the group and its ancestors applies.
        """
        return min((quota for quota in map(read_quota, self.cpu) if quota is not None), default=None)

    @property
    def memory_bytes(self) -> int | None:
        """The memory that the group may use, including page cache; None if there is no limit."""
        return min((limit for limit in map(memory_limit, self.memory) if limit is not None), default=None)

    @property
    def processes(self) -> tuple[int, Path] | None:
        """The number of processes and threads that the group may have, and the group that sets this limit.

        None if there is no limit. The tightest limit of the group and its ancestors applies.
        """
        # `max` is not a number.
        limits = ((read_number(path / "pids.max"), path) for path in self.pids)
        return min(
            ((most, path) for most, path in limits if most is not None), key=lambda limit: limit[0], default=None
        )

    @property
    def memory_available(self) -> int | None:
        """The bytes that the group can still allocate: the limit minus memory in use, not counting idle page cache."""
        rooms = []
        for path in self.memory:
            most, used = memory_limit(path), read_first(path, "memory.current", "memory.usage_in_bytes")
            if most is not None and used is not None:
                stat = parse_fields(read_text(path / "memory.stat"))
                # v1 has both fields; its usage, like its `total_` fields, includes all descendant groups.
                idle = stat.get("total_inactive_file", stat.get("inactive_file", 0))
                rooms.append(max(most - used + idle, 0))
        return min(rooms, default=None)

    @property
    def cpu_wait_ns(self) -> int | None:
        """The time for which an exhausted quota kept the group from running, ns, summed over all processors."""
        units = {"throttled_usec": 1000, "throttled_time": 1}
        stats = (parse_fields(read_text(path / "cpu.stat")) for path in self.cpu)
        totals = [stat[name] * unit for stat in stats for name, unit in units.items() if name in stat]
        return sum(totals) if totals else None


def control_group(proc: Path = PROC) -> ControlGroup:
    """The control group of this process."""
    paths: dict[str, str] = {}
    for line in read_text(proc / "self/cgroup").splitlines():
        # The format is hierarchy:controllers:path; v2 lists no controllers.
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        paths.update(dict.fromkeys(controllers.split(","), path))
    chains: dict[str, tuple[Path, ...]] = {}
    for mount in list_mounts(proc):
        if mount.type == "cgroup2" and "" in paths:
            chain = list_ancestors(mount.root, mount.point, paths[""])
            for controller in CONTROLLERS:
                chains.setdefault(controller, chain)
        for controller in CONTROLLERS:
            # A controller belongs to either v1 or v2, never to both.
            if mount.type == "cgroup" and controller in mount.super_options and controller in paths:
                chains[controller] = list_ancestors(mount.root, mount.point, paths[controller])
    return ControlGroup(**chains)


def list_ancestors(root: str, point: str, path: str) -> tuple[Path, ...]:
    """A group's directory and its ancestors, as far as they are mounted."""
    # A container sees its group at the mount point, whatever the group's path on the host is.
    inside = path[len(root.rstrip("/")) :] if is_within(path, root) else ""
    top = Path(point)
    here = top / inside.strip("/")
    return tuple(folder for folder in (here, *here.parents) if folder.is_relative_to(top)) if here.is_dir() else (top,)


def read_quota(path: Path) -> float | None:
    """The number of processors that a group may use: quota ÷ period."""
    fields = read_text(path / "cpu.max").split() or [
        read_text(path / f"cpu.cfs_{name}_us") for name in ("quota", "period")
    ]
    share, period = (parse_whole(word) for word in (*fields, "", "")[:2])
    return share / period if share is not None and period and share > 0 else None


def memory_limit(path: Path) -> int | None:
    """The bytes that a group may use."""
    most = read_first(path, "memory.max", "memory.limit_in_bytes")
    return most if most is not None and most < UNLIMITED else None


def read_first(path: Path, *names: str) -> int | None:
    """The number in the first of these files that contains one."""
    return next((value for name in names if (value := read_number(path / name)) is not None), None)
