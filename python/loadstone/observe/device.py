"""Devices: the storage that contains a directory, found through its mount (/proc/self/mountinfo, proc(5)).

Bytes are counted on the block device of the file system (a partition, a logical volume), so that only the bytes of this
file system count. The utilisation is read from the whole disks under that device.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, SYS, list_names, read_text

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "virtiofs"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "fuse.juicefs", "fuse.gcsfuse"}
)
ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo: `number` is `major:minor`, and `root` is the part of the file system that is mounted at
    `point`."""

    number: str
    root: str
    point: str
    type: str
    source: str
    # The options of the mount, and the options of the file system (`upperdir=…`, `data=ordered`).
    options: tuple[str, ...]
    super_options: tuple[str, ...]


@dataclass(frozen=True)
class Device:
    """Block devices by their kernel names: the `parts` that contain the file system (several only for btrfs),
    and the `disks` under them."""

    parts: tuple[str, ...]
    disks: tuple[str, ...]
    # False if the kernel is configured not to count I/O (queue/iostats): zeros are then meaningless.
    counted: bool = True

    def __str__(self) -> str:
        parts, disks = ", ".join(self.parts), ", ".join(self.disks)
        return parts if self.parts == self.disks else f"{parts} on {disks}"


@dataclass(frozen=True)
class Backing:
    """The storage behind a directory; `description` names it: `nvme0n1p2 on nvme0n1`, `no device (tmpfs)`."""

    mount: Mount | None
    device: Device | None
    description: str


def list_mounts(proc: Path = PROC) -> list[Mount]:
    """All mounts that are visible to this process, in order; empty if they cannot be read."""
    mounts = []
    for line in read_text(proc / "self/mountinfo").splitlines():
        # There can be any number of tags between the sixth field and the dash.
        head, dash, tail = line.partition(" - ")
        left, right = head.split(), tail.split(" ")
        if dash and len(left) >= 6 and len(right) >= 2:
            options = tuple(unescape_word(option) for option in right[-1].split(",")) if len(right) > 2 else ()
            paths = (unescape_word(left[3]), unescape_word(left[4]))
            mounts.append(Mount(left[2], *paths, right[0], unescape_word(right[1]), tuple(left[5].split(",")), options))
    return mounts


def mount_of(directory: Path, proc: Path = PROC) -> Mount | None:
    """The mount that contains a directory; the directory need not exist yet."""
    path = os.path.realpath(directory)
    best: Mount | None = None
    for mount in list_mounts(proc):
        # If there are several mounts at the same point, the last one hides the earlier ones.
        if is_within(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_within(path: str, point: str) -> bool:
    """Whether a path is a mount point or below it."""
    return path == point or path.startswith(point.rstrip("/") + "/")


def unescape_word(word: str) -> str:
    """Decodes a word of mountinfo, which encodes space, tab, newline and backslash in octal."""
    return ESCAPE.sub(lambda match: chr(int(match[1], 8)), word)


def file_system_of(directory: Path, proc: Path = PROC) -> str:
    """The type of a directory's file system, such as `ext4`; `unknown` if it cannot be read."""
    mount = mount_of(directory, proc)
    return mount.type if mount else "unknown"


def backing_of(directory: Path, proc: Path = PROC, sys: Path = SYS) -> Backing:
    """The storage behind a directory; the directory need not exist yet."""
    mount = mount_of(directory, proc)
    if mount is None:
        return Backing(None, None, "unknown")
    if mount.type in IN_MEMORY:
        return Backing(mount, None, f"no device ({mount.type})")
    if mount.type in REMOTE:
        return Backing(mount, None, f"over the network ({mount.type})")
    nodes = [node for node in _list_nodes(mount, sys) if node is not None]
    if not nodes:
        return Backing(mount, None, f"unknown ({mount.type})")
    disks = dict.fromkeys(disk.name for node in nodes for disk in _list_disks(node))
    counted = all(read_text(_device_of_partition(node) / "queue/iostats") != "0" for node in nodes)
    device = Device(tuple(node.name for node in nodes), tuple(disks), counted)
    return Backing(mount, device, str(device))


def _list_nodes(mount: Mount, sys: Path) -> list[Path | None]:
    """The /sys directories of the block devices that contain a file system."""
    if not mount.number.startswith("0:"):
        return [_resolve_node(sys / "dev/block" / mount.number)]
    if mount.type != "btrfs":
        return []
    # btrfs has a separate device number, and names one of its devices as the source.
    source = os.path.basename(os.path.realpath(mount.source))
    pools = [sys / "fs/btrfs" / pool / "devices" for pool in list_names(sys / "fs/btrfs")]
    return [_resolve_node(pool / member) for pool in pools if source in list_names(pool) for member in list_names(pool)]


def _resolve_node(link: Path) -> Path | None:
    """The target of a link in /sys; None if the target does not exist."""
    return link.resolve() if link.exists() else None


def _device_of_partition(node: Path) -> Path:
    """The device to which a partition belongs; for a whole device, the device itself."""
    return node.parent if (node / "partition").exists() else node


def _list_disks(node: Path) -> list[Path]:
    """The disks under a device, found through partitions, device mapper (LVM, LUKS) and md."""
    node = _device_of_partition(node)
    slaves = [child for name in list_names(node / "slaves") if (child := _resolve_node(node / "slaves" / name))]
    return [disk for slave in slaves for disk in _list_disks(slave)] or [node]
