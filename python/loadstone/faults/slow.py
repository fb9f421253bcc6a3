"""The fault `slow` limits the CPU time of a server with a control group quota or, if that is impossible, by stopping
the server for part of each period with SIGSTOP."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone.faults.fault import Fault
from loadstone.faults.pause import states_of_threads
from loadstone.observe.control_group import control_group
from loadstone.observe.kernel_file import parse_fields, read_text
from loadstone.systems.base import process
from loadstone.systems.base.process import PAUSED
from loadstone.systems.base.undo import Step

# The period of the quota: shorter than typical timeouts, and longer than a time slice of the scheduler.
PERIOD_US = 100_000


class Slow(Fault):
    """Servers that may use only a share of one processor."""

    def prepare(self) -> None:
        """Chooses the mechanism."""
        self._group = quota_parent()
        self._stopping = threading.Event()
        self._cycle: threading.Thread | None = None

    def undo_steps(self) -> Sequence[Step]:
        """Empties and removes the control groups, or resumes the processes."""
        if self._group is None:
            return [Step("resume", name) for name in self.victims]
        return [Step("leave_group", str(path), text=str(self._group)) for path in self.groups()]

    def groups(self) -> list[Path]:
        """The control group of each victim."""
        assert self._group is not None
        return [self._group / f"loadstone-{self.running.place.root.name}-{name}" for name in self.victims]

    def inject(self) -> None:
        """Moves all processes to control groups with a quota, or starts the duty cycle. Raises OSError."""
        if self._group is None:
            self._cycle = threading.Thread(target=self._stop_and_resume, name="fault-slow-cycle")
            self._cycle.start()
            return
        for path, name in zip(self.groups(), self.victims, strict=True):
            path.mkdir(exist_ok=True)
            set_quota(path, round(self.planned.cpu * PERIOD_US))
            for member in self.members:
                if member.name == name:
                    with contextlib.suppress(ProcessLookupError):
                        (path / "cgroup.procs").write_text(str(member.pid))

    def missing_effect(self) -> str | None:
        """Names the first victim that has not been throttled."""
        if self._group is None:
            halted = any(states_of_threads(member) & PAUSED for member in self.members)
            return None if halted else "no process was stopped"
        for path in self.groups():
            if not parse_fields(read_text(path / "cpu.stat")).get("nr_throttled"):
                return f"{path.name} has not been throttled: the server uses less than its quota"
        return None

    def lift(self) -> None:
        """Removes the quota or stops the duty cycle. Raises LoadstoneError."""
        self._stopping.set()
        if self._cycle is not None:
            self._cycle.join()
        super().lift()

    def remaining_effect(self) -> str | None:
        """Names the first control group that still exists, or the first process that is still stopped."""
        if self._existing():
            return f"{self._existing()[0].name} still exists"
        for member in self.members:
            if states_of_threads(member) & PAUSED:
                return f"a thread of {member.name} (pid {member.pid}) is still stopped"
        return None

    def _existing(self) -> list[Path]:
        return [] if self._group is None else [path for path in self.groups() if path.exists()]

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The mechanism, and the share of a processor that a server may use."""
        return {"cpu_share": self.planned.cpu, "mechanism": "duty cycle" if self._group is None else "cpu quota"}

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
