"""Tests which faults this host supports: each mechanism is tried on processes, files and namespaces that are created
for the test."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.faults import SLOW_DISK
from loadstone.experiment.plan.plan import Plan
from loadstone.experiment.plan.required_servers import Attached
from loadstone.faults.slow import device_number, set_throttle, throttle_parent
from loadstone.systems.base import disks
from loadstone.systems.base.networks import probe_network
from loadstone.systems.base.system import SystemsError

PROBE_BYTES = 16 << 20
# A write of this many bytes takes a second if the limit is this many bytes per second.
THROTTLE_BYTES, THROTTLE_SECONDS_MIN = 1 << 20, 0.5


@dataclass(frozen=True)
class Mechanism:
    """A mechanism for faults, with a probe that returns the reason why the mechanism does not work, or None."""

    name: str
    probe: Callable[[], str | None]
    # The faults that need the mechanism.
    faults: tuple[str, ...]


def probe_signals() -> str | None:
    """Stops, resumes and kills a process through its pidfd."""
    try:
        with subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL) as child:
            handle = os.pidfd_open(child.pid)
            try:
                for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL):
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
                child.kill()
            child.wait()
    except OSError as error:
        return f"pidfd: {error.strerror}"
    return None


def probe_disk(probe: Callable[[Path, Path], str | None]) -> str | None:
    """Mounts ext4 on a loop device, calls `probe` with the mount point and the image file, and returns the result."""
    if os.geteuid() != 0:
        return "it needs root"
    if missing := [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]:
        return f"{missing[0]} is not installed"
    with tempfile.TemporaryDirectory() as name:
        directory, image = Path(name).resolve() / "mounted", Path(name) / "disks/probe.ext4"
        directory.mkdir()
        try:
            disks.mount_disk(image, directory, PROBE_BYTES)
            return probe(directory, image)
        except (SystemsError, OSError) as error:
            return str(error.args[0]) if isinstance(error, SystemsError) else f"{error.strerror}"
        finally:
            with contextlib.suppress(SystemsError):
                disks.unmount_directory(directory)


def probe_shutdown(directory: Path, image: Path) -> str | None:
    """Stops a file system as a power cut does, and mounts it again. Raises SystemsError or OSError."""
    disks.shut_down(directory)
    if not disks.is_shut_down(directory):
        return "ext4 accepts writes after its shutdown"
    disks.unmount_directory(directory)
    disks.mount_disk(image, directory, PROBE_BYTES)
    return None


def probe_throttle(directory: Path, _: Path) -> str | None:
    """Checks that a throttled write takes longer than THROTTLE_SECONDS_MIN. Raises SystemsError or OSError."""
    parent = throttle_parent()
    if parent is None:
        return "this process cannot create a control group for disks"
    group = parent / f"loadstone-probe-{os.getpid()}"
    group.mkdir()
    try:
        set_throttle(group, device_number(directory), THROTTLE_BYTES)
        write = f"dd if=/dev/zero of={directory}/probe bs={THROTTLE_BYTES} count=1 conv=fsync"
        begin = time.monotonic()
        disks.run_or_fail("sh", "-c", f"echo $$ > {group}/cgroup.procs && exec {write}")
        # A burst is written without delay.
        return None if time.monotonic() - begin > THROTTLE_SECONDS_MIN else "writes are faster than the limit"
    finally:
        group.rmdir()


MECHANISMS = (
    Mechanism("signals by pidfd", probe_signals, ("kill", "stop", "pause", "restart", "power", "slow")),
    Mechanism("file systems on loop devices", partial(probe_disk, probe_shutdown), ("power", "full")),
    Mechanism("disk throttling by control groups", partial(probe_disk, probe_throttle), (SLOW_DISK,)),
    Mechanism("network namespaces", probe_network, ("cut",)),
)


def probe_faults(kinds: Iterable[str] | None = None) -> Mapping[str, str]:
    """The reasons why this host does not support faults, keyed by fault; checks only `kinds`, by default all faults."""
    reasons: dict[str, str] = {}
    for mechanism in MECHANISMS:
        affected = mechanism.faults if kinds is None else [kind for kind in mechanism.faults if kind in {*kinds}]
        if affected and (reason := mechanism.probe()) is not None:
            reasons |= {kind: f"{mechanism.name}: {reason}" for kind in affected if kind not in reasons}
    return reasons


def require_support(plan: Plan) -> None:
    """Raises LoadstoneError if this host does not support a fault that the plan injects into started servers."""
    kinds = {
        name
        for variant in plan.variants
        for fault in variant.faults
        for name in fault.mechanisms
        if variant.servers is not None
        and not isinstance(variant.servers.how, Attached)
        # For servers on other hosts, each host's agent makes this check.
        and not variant.servers.how.system.on_hosts
    }
    for kind, reason in sorted(probe_faults(kinds - {"none"}).items()):
        raise LoadstoneError(
            f"this host does not support the fault {kind}: {reason}", "`loadstone doctor` lists the supported faults"
        )
