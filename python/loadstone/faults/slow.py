"""The fault `slow` uses control groups to limit a server's CPU time or disk throughput. Without control groups, SIGSTOP
stops the server for part of each period, which limits its CPU time.

In version 1 of control groups, buffered writes are delayed only when the server syncs them, because the kernel's
write-back does not count towards the group (admin-guide/cgroup-v1/blkio-controller.rst). Version 2 has not been tested.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.faults.fault import Fault, FaultError
from loadstone.faults.pause import states_of_threads
from loadstone.faults.power import find_disk
from loadstone.observe.control_group import control_group
from loadstone.observe.kernel_file import parse_fields, read_text
from loadstone.systems.base import process
from loadstone.systems.base.process import PAUSED
from loadstone.systems.base.undo import Step

# The period of the quota: shorter than typical timeouts, and longer than a time slice of the scheduler.
PERIOD_US = 100_000
# The throughput of a limited disk is measured over at least this time, and must then lie between these multiples
# of the limit: the kernel allows short bursts.
RATE_SECONDS, RATE_SHARES = 0.5, (0.5, 1.5)


@dataclass
class DiskRate:
    """The read or write throughput of a control group over the last `RATE_SECONDS`, whichever is higher."""

    group: Path
    device: str
    readings: deque[tuple[float, int, int]] = field(default_factory=deque)

    def measure(self) -> float | None:
        """The throughput in bytes per second; None until enough time has passed."""
        now, counts = time.monotonic(), disk_bytes(self.group, self.device)
        while len(self.readings) > 1 and self.readings[1][0] <= now - RATE_SECONDS:
            self.readings.popleft()
        self.readings.append((now, *counts))
        first = self.readings[0]
        if now - first[0] < RATE_SECONDS:
            return None
        return max((after - before) / (now - first[0]) for before, after in zip(first[1:], counts, strict=True))


class Slow(Fault):
    """Limits servers to a share of one processor, or to a given disk throughput."""

    def prepare(self) -> None:
        """Chooses the mechanisms. Raises FaultError if a disk cannot be limited."""
        self._cpu_parent = quota_parent() if self.planned.cpu else None
        self._disk_parent = throttle_parent() if self.planned.disk_bytes else None
        if self.planned.disk_bytes:
            if self._disk_parent is None:
                raise FaultError("no control group can limit the throughput of a disk", "see `loadstone doctor`")
            self._devices = {name: device_number(find_disk(self, name)) for name in self.victims}
        self._stopping = threading.Event()
        self._cycle: threading.Thread | None = None
        self._rates: list[DiskRate] = []

    def _has_duty_cycle(self) -> bool:
        return bool(self.planned.cpu) and self._cpu_parent is None

    def undo_steps(self) -> Sequence[Step]:
        """Empties and removes the control groups, and resumes the processes."""
        resumed = [Step("resume", name) for name in self.victims] if self._has_duty_cycle() else []
        groups = (path for name in self.victims for path in self._groups(name))
        return [*resumed, *(Step("leave_group", str(path), text=str(path.parent)) for path in groups)]

    def _groups(self, server: str) -> list[Path]:
        """The control groups of a server. In version 2, there is only one."""
        parents = [parent for parent in (self._cpu_parent, self._disk_parent) if parent is not None]
        return [self._group(parent, server) for parent in dict.fromkeys(parents)]

    def _group(self, parent: Path, server: str) -> Path:
        return parent / f"loadstone-{self.running.place.root.name}-{server}"

    def inject(self) -> None:
        """Moves all processes to control groups with limits, and starts the duty cycle if needed. Raises OSError."""
        for name in self.victims:
            for path in self._groups(name):
                path.mkdir(exist_ok=True)
            if self._cpu_parent is not None:
                set_quota(self._group(self._cpu_parent, name), round(self.planned.cpu * PERIOD_US))
            if self._disk_parent is not None:
                group = self._group(self._disk_parent, name)
                set_throttle(group, self._devices[name], self.planned.disk_bytes)
                self._rates.append(DiskRate(group, self._devices[name]))
        for member in self.members:
            for path in self._groups(member.name):
                with contextlib.suppress(ProcessLookupError):
                    (path / "cgroup.procs").write_text(str(member.pid))
        if self._has_duty_cycle():
            self._cycle = threading.Thread(target=self._stop_and_resume, name="fault-slow-cycle")
            self._cycle.start()

    def missing_effect(self) -> str | None:
        """The first reason why a limit has not been verified; None if there is none."""
        return next(iter([*self._missing_cpu_effects(), *self._missing_disk_effects()]), None)

    def _missing_cpu_effects(self) -> Iterator[str]:
        if self._has_duty_cycle():
            if not any(states_of_threads(member) & PAUSED for member in self.members):
                yield "no process was stopped"
        elif self._cpu_parent is not None:
            for group in (self._group(self._cpu_parent, name) for name in self.victims):
                if not parse_fields(read_text(group / "cpu.stat")).get("nr_throttled"):
                    yield f"{group.name} has not been throttled: the server uses less than its quota"

    def _missing_disk_effects(self) -> Iterator[str]:
        least, most = (share * self.planned.disk_bytes for share in RATE_SHARES)
        for disk in self._rates:
            rate = disk.measure()
            if rate is None:
                yield f"the throughput of {disk.group.name} was not measured for {RATE_SECONDS:g} s"
            elif rate < least:
                yield f"{disk.group.name} has not been throttled: the server reads and writes less than its limit"
            elif rate > most:
                yield f"{disk.group.name} reads or writes {rate:,.0f} bytes/s, more than its limit"

    def lift(self) -> None:
        """Stops the duty cycle, if there is one, and removes the limits. Raises LoadstoneError."""
        self._stopping.set()
        if self._cycle is not None:
            self._cycle.join()
        super().lift()

    def remaining_effect(self) -> str | None:
        """Names the first control group that still exists, or the first process that is still stopped."""
        for path in (path for name in self.victims for path in self._groups(name) if path.exists()):
            return f"{path.name} still exists"
        for member in self.members:
            if states_of_threads(member) & PAUSED:
                return f"a thread of {member.name} (pid {member.pid}) is still stopped"
        return None

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The mechanisms and the limits of each server."""
        cpu = "duty cycle" if self._has_duty_cycle() else "cpu quota"
        mechanisms = [cpu] * bool(self.planned.cpu) + ["disk throttle"] * bool(self.planned.disk_bytes)
        limits = {"cpu_share": self.planned.cpu, "disk_bytes_per_s": self.planned.disk_bytes}
        return {"mechanism": ", ".join(mechanisms), **{name: limit for name, limit in limits.items() if limit}}

    def _stop_and_resume(self) -> None:
        running_s = self.planned.cpu * PERIOD_US / 1e6
        while not self._stopping.is_set():
            for number, seconds in ((signal.SIGSTOP, PERIOD_US / 1e6 - running_s), (signal.SIGCONT, running_s)):
                for member in self.members:
                    process.send_signal(member, number)
                self._stopping.wait(seconds)
        for member in self.members:
            process.send_signal(member, signal.SIGCONT)


def quota_parent() -> Path | None:
    """This process's control group (v1 or v2), if it can have subgroups with a CPU quota. (v2 has not been tested.)"""
    for path in control_group().cpu[:1]:
        probe = path / "loadstone-probe"
        try:
            probe.mkdir(exist_ok=True)
            set_quota(probe, PERIOD_US)
        except OSError:
            continue
        finally:
            with contextlib.suppress(OSError):
                probe.rmdir()
        return path
    return None


def set_quota(group: Path, quota_us: int) -> None:
    """Limits the CPU time of a control group in each period. Raises OSError."""
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        return
    (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(quota_us))


def throttle_parent() -> Path | None:
    """This process's control group (v1 or v2), if its subgroups can limit disks. (v2 has not been tested.)"""
    for path in control_group().blkio[:1]:
        probe = path / "loadstone-probe"
        try:
            probe.mkdir(exist_ok=True)
            if any((probe / name).exists() for name in ("io.max", "blkio.throttle.write_bps_device")):
                return path
        except OSError:
            continue
        finally:
            with contextlib.suppress(OSError):
                probe.rmdir()
    return None


def set_throttle(group: Path, device: str, bytes_per_s: int) -> None:
    """Limits the reads and the writes of a control group on a device (`major:minor`). Raises OSError."""
    if (group / "io.max").exists():
        (group / "io.max").write_text(f"{device} rbps={bytes_per_s} wbps={bytes_per_s}")
        return
    for action in ("read", "write"):
        (group / f"blkio.throttle.{action}_bps_device").write_text(f"{device} {bytes_per_s}")


def disk_bytes(group: Path, device: str) -> tuple[int, int]:
    """The bytes that a control group has read from a device and written to it."""
    counts = {"Read": 0, "Write": 0}
    for line in read_text(group / "blkio.throttle.io_service_bytes").splitlines():
        number, _, count = line.partition(" ")
        action, _, size = count.partition(" ")
        if number == device and action in counts:
            counts[action] = int(size)
    # v2: 7:0 rbytes=4096 wbytes=8192 …
    for line in read_text(group / "io.stat").splitlines():
        number, *fields = line.split()
        if number == device:
            values = dict(field.split("=") for field in fields if "=" in field)
            counts = {"Read": int(values.get("rbytes", 0)), "Write": int(values.get("wbytes", 0))}
    return counts["Read"], counts["Write"]


def device_number(directory: Path) -> str:
    """The device of a directory's file system, as `major:minor`."""
    number = directory.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"
