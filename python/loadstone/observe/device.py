"""Devices: what stores the bytes of a directory.

Bytes are counted on the block device that holds the file system (a partition, a logical volume): what this file
system asked of it, and nothing of its neighbours. How busy the storage is shows on the whole disks below it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, SYS, names, text
from loadstone.observe.mount import Mount, mount_of

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "virtiofs"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "fuse.juicefs", "fuse.gcsfuse"}
)
# A file on a file system on a file on …: nobody needs more, and links may go in a circle.
DEPTH_MAX = 8


@dataclass(frozen=True)
class Device:
    """Block devices by their kernel names: `parts` hold the file system (one, but for btrfs), `disks` are below."""

    parts: tuple[str, ...]
    disks: tuple[str, ...]
    # False where the kernel was told to keep no account (queue/iostats): its zeros mean nothing.
    counted: bool = True

    def __str__(self) -> str:
        parts, disks = ", ".join(self.parts), ", ".join(self.disks)
        return parts if self.parts == self.disks else f"{parts} on {disks}"


@dataclass(frozen=True)
class Backing:
    """What is behind a directory; `words` say it: `nvme0n1p2 on nvme0n1`, `no device (tmpfs)`."""

    mount: Mount | None
    device: Device | None
    words: str


def device_of(directory: Path, proc: Path = PROC, sys: Path = SYS) -> Device | None:
    """The block devices behind a directory; None where there is none, or none that can be seen."""
    return backing_of(directory, proc, sys).device


def file_system_of(directory: Path, proc: Path = PROC) -> str:
    """The type of a directory's file system, as `ext4`; `unknown` where the system does not tell."""
    mount = mount_of(directory, proc)
    return mount.type if mount else "unknown"


def backing_of(directory: Path, proc: Path = PROC, sys: Path = SYS) -> Backing:
    """What is behind a directory, which need not be there yet."""
    return _backing(directory, proc, sys, DEPTH_MAX)


def _backing(directory: Path, proc: Path, sys: Path, depth: int) -> Backing:
    mount = mount_of(directory, proc)
    if mount is None:
        return Backing(None, None, "unknown")
    if mount.type in IN_MEMORY:
        return Backing(mount, None, f"no device ({mount.type})")
    if mount.type in REMOTE:
        return Backing(mount, None, f"over the network ({mount.type})")
    if mount.type == "overlay":
        # What is written goes to the upper directory. Inside a container its path is the host's and leads nowhere.
        upper = mount.option("upperdir")
        if upper and depth and os.path.isdir(upper):
            below = _backing(Path(upper), proc, sys, depth - 1)
            return Backing(mount, below.device, below.words)
        return Backing(mount, None, "unknown (overlay)")
    nodes = [found for found in _nodes(mount, sys) if found is not None]
    if not nodes:
        return Backing(mount, None, f"unknown ({mount.type})")
    disks = dict.fromkeys(disk.name for node in nodes for disk in _disks(node, proc, sys, depth))
    counted = all(text(_whole(node) / "queue/iostats") != "0" for node in nodes)
    device = Device(tuple(node.name for node in nodes), tuple(disks), counted)
    return Backing(mount, device, str(device))


def _nodes(mount: Mount, sys: Path) -> list[Path | None]:
    """The directories in /sys of the block devices that hold a file system."""
    if not mount.number.startswith("0:"):
        return [_node(sys / "dev/block" / mount.number)]
    # btrfs, bcachefs and some more have numbers of their own and name devices as source, bcachefs with colons.
    sources = [os.path.basename(os.path.realpath(name)) for name in mount.source.split(":") if name.startswith("/dev/")]
    nodes = [_node(sys / "class/block" / name) for name in sources]
    for pool in names(sys / "fs/btrfs") if mount.type == "btrfs" else ():
        members = names(sys / "fs/btrfs" / pool / "devices")
        if set(sources) & set(members):
            return [_node(sys / "fs/btrfs" / pool / "devices" / member) for member in members]
    return nodes


def _node(link: Path) -> Path | None:
    """Where a link in /sys leads, None if nowhere."""
    return link.resolve() if link.exists() else None


def _whole(node: Path) -> Path:
    """The device that a partition is part of; a whole one is its own."""
    return node.parent if (node / "partition").exists() else node


def _disks(node: Path, proc: Path, sys: Path, depth: int) -> list[Path]:
    """The disks below a device: through partitions, device mapper (LVM, LUKS), md and loop devices."""
    node = _whole(node)
    slaves = [found for name in names(node / "slaves") if (found := _node(node / "slaves" / name))]
    if depth and slaves:
        return [disk for slave in slaves for disk in _disks(slave, proc, sys, depth - 1)]
    if depth and (file := text(node / "loop/backing_file")):
        below = _backing(Path(file).parent, proc, sys, depth - 1).device
        holders = [_node(sys / "class/block" / name) for name in below.disks] if below else []
        return [disk for disk in holders if disk] or [node]
    return [node]
