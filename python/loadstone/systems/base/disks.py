"""Creates a file system for each node of a system: ext4 in a file, on a loop device. Requires root.

A power cut or a full disk then affects only one node, and no other data on the host.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from loadstone.observe.device import list_mounts
from loadstone.observe.kernel_file import PROC, list_pids, read_text
from loadstone.systems.base.system import SystemsError

# See fs/ext4/ext4.h. The ioctl stops the file system immediately; with the flag, the journal is not written first.
EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2
COMMAND_SECONDS = 60.0
# A killed server keeps its files open until the kernel has removed the process.
BUSY_SECONDS, POLL_SECONDS = 10.0, 0.02
SIZE_MIN = 16 << 20
HINT = (
    "run as root, on a kernel with loop devices and ext4; `loadstone doctor` lists the faults that this host supports"
)


def image_path(root: Path, name: str) -> Path:
    """The file that contains a node's file system, in the directory of its system."""
    return root / "disks" / f"{name}.ext4"


def mount_disk(path: Path, directory: Path, size_bytes: int) -> None:
    """Mounts a node's file system, and creates it if it is missing. Raises SystemsError."""
    if is_mounted(directory):
        return
    if not path.exists():
        if size_bytes < SIZE_MIN:
            raise SystemsError(f"a file system of {size_bytes} bytes is too small", f"use at least {SIZE_MIN} bytes")
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        with draft.open("wb") as file:
            file.truncate(size_bytes)
        # The inode tables and the journal are initialised now; otherwise, the kernel would do so during the
        # measurement.
        run_or_fail(
            "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,root_owner", str(draft)
        )
        draft.rename(path)
    run_or_fail("mount", "-t", "ext4", "-o", "loop", str(path), str(directory))
    lost = directory / "lost+found"
    if lost.is_dir():
        # PostgreSQL and other systems refuse a directory that is not empty.
        lost.rmdir()


def unmount_stopped(directory: Path) -> None:
    """Unmounts a directory whose file system has stopped. Raises SystemsError."""
    if is_mounted(directory) and is_shut_down(directory):
        unmount_directory(directory)


def unmount_directory(directory: Path) -> None:
    """Unmounts a directory in all mount namespaces, if it is mounted. Raises SystemsError.

    A namespace that was created while the file system was mounted has a copy of the mount, which keeps the file system
    alive: the next mount of its device would be the same file system, still stopped (mount_namespaces(7)).
    """
    if not is_mounted(directory):
        return
    device = directory.stat().st_dev
    until = time.monotonic() + BUSY_SECONDS
    while is_mounted(directory):
        try:
            run_or_fail("umount", str(directory))
        except SystemsError:
            if time.monotonic() >= until:
                raise
            time.sleep(POLL_SECONDS)
    # A namespace may disappear at any time, a new namespace may inherit a copy, and a process may still use a copy.
    until = time.monotonic() + BUSY_SECONDS
    while copies := find_copies(device):
        if time.monotonic() >= until:
            message = f"{directory} is still mounted in the mount namespace of process {copies[0][0]}"
            raise SystemsError(message, "stop that process, or unmount the directory in its namespace")
        for pid, point in copies:
            with contextlib.suppress(SystemsError):
                run_or_fail("nsenter", f"--target={pid}", "--mount", "--", "umount", point)
        time.sleep(POLL_SECONDS)


def find_copies(device: int) -> list[tuple[int, str]]:
    """For each other mount namespace in which a device is mounted: one of its processes, and the mount point."""
    number = f"{os.major(device)}:{os.minor(device)}"
    own = os.readlink(PROC / "self/ns/mnt")
    copies: list[tuple[int, str]] = []
    checked = {own}
    for pid in list_pids(PROC):
        with contextlib.suppress(OSError):
            namespace = os.readlink(PROC / str(pid) / "ns/mnt")
            if namespace not in checked:
                checked.add(namespace)
                # mount ID, parent ID, device, root, mount point (proc_pid_mountinfo(5))
                rows = [line.split() for line in read_text(PROC / str(pid) / "mountinfo").splitlines()]
                if points := [row[4] for row in rows if row[2] == number]:
                    copies.append((pid, points[0]))
    return copies


def remove_disks(root: Path, directories: Iterable[Path]) -> None:
    """Unmounts and removes the file systems of a system. Raises SystemsError."""
    disks = root / "disks"
    if not disks.is_dir():
        return
    for directory in directories:
        unmount_directory(directory.resolve())
    for path in disks.iterdir():
        path.unlink()
    disks.rmdir()


def is_mounted(directory: Path) -> bool:
    """Whether this directory is a mount point."""
    return any(mount.point == str(directory) for mount in list_mounts(PROC))


def shut_down(directory: Path) -> None:
    """Stops a file system as a power cut would: only synced data survives. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    finally:
        os.close(descriptor)


def is_shut_down(directory: Path) -> bool:
    """Whether writing fails as it does after `shut_down`: with EIO, or with EROFS once ext4 has noticed an error."""
    probe = directory / ".loadstone-probe"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600))
        probe.unlink()
    except OSError as error:
        return error.errno in (errno.EIO, errno.EROFS)
    return False


def run_or_fail(*command: str) -> None:
    """Runs a command. Raises SystemsError."""
    run_command(command, HINT)


def run_command(command: Sequence[str], hint: str) -> str:
    """The output of a command. Raises SystemsError with the command's error message and `hint`."""
    # Files instead of pipes: a server that the command leaves in the background would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, timeout=COMMAND_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SystemsError(f"cannot run {command[0]}: {error}", hint) from error
        for file in (out, errors):
            file.seek(0)
        if done.returncode:
            raise SystemsError(f"`{' '.join(command)}` failed: {errors.read().decode(errors='replace').strip()}", hint)
        return out.read().decode(errors="replace")
