"""The storage behind a directory: mounts, devices, bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.observe.device import Device, backing_of, file_system_of
from loadstone.observe.host_counters import read_disks
from loadstone.observe.page_cache import flush_file_system
from observe_support import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def device(host: Host, directory: str) -> Device | None:
    return backing_of(Path(directory), host.proc, host.sys).device


def describe_device(host: Host, directory: str) -> str:
    return backing_of(Path(directory), host.proc, host.sys).description


def test_nvme_partition_is_counted_above_its_disk(host: Host) -> None:
    host.disk("nvme0n1", "259:0", ("nvme0n1p1", "259:1"), ("nvme0n1p2", "259:2"))
    host.mounts("259:1 / ext4 /dev/root rw", "259:2 /data xfs /dev/nvme0n1p2 rw")
    assert device(host, "/data/rocksdb/not-there-yet") == Device(("nvme0n1p2",), ("nvme0n1",))
    assert device(host, "/database") == Device(("nvme0n1p1",), ("nvme0n1",))
    assert describe_device(host, "/data") == "nvme0n1p2 on nvme0n1"
    assert file_system_of(Path("/data"), host.proc) == "xfs"


def test_logical_volume_is_followed_to_both_disks(host: Host) -> None:
    host.disk("sda", "8:0", ("sda1", "8:1"))
    host.disk("sdb", "8:16")
    host.virtual("dm-0", "253:0", "sda1")
    host.virtual("dm-1", "253:1", "dm-0", "sdb")
    host.mounts("8:1 / ext4 /dev/sda1 rw", "253:1 /srv ext4 /dev/mapper/vg-data rw")
    assert device(host, "/srv/x") == Device(("dm-1",), ("sda", "sdb"))


def test_partition_of_an_array_is_followed_through_it(host: Host) -> None:
    host.disk("sda", "8:0")
    host.disk("sdb", "8:16")
    host.virtual("md0", "9:0", "sda", "sdb")
    host.write("sys/devices/virtual/block/md0/md0p1/partition", "1")
    host.link("sys/dev/block/259:7", "sys/devices/virtual/block/md0/md0p1")
    host.mounts("259:7 / ext4 /dev/md0p1 rw")
    assert device(host, "/") == Device(("md0p1",), ("sda", "sdb"))


def test_an_overlay_is_unknown_and_not_none(host: Host) -> None:
    host.mounts("0:50 / overlay overlay rw,upperdir=/var/lib/docker/overlay2/0f3/diff,workdir=/w")
    assert device(host, "/db") is None
    assert describe_device(host, "/db") == "unknown (overlay)"


def test_memory_and_network_mounts_have_no_local_device(host: Host) -> None:
    host.mounts(
        "8:1 / ext4 /dev/sda1 rw", "0:23 /dev/shm tmpfs tmpfs rw", "0:60 /nfs nfs4 filer:/x rw", "0:61 /z zfs p/z rw"
    )
    assert [describe_device(host, path) for path in ("/dev/shm/db", "/nfs/db", "/z/db", "/db")] == [
        "no device (tmpfs)",
        "over the network (nfs4)",
        "unknown (zfs)",
        "unknown (ext4)",
    ]
    assert all(device(host, path) is None for path in ("/dev/shm/db", "/nfs/db", "/z", "/"))


def test_btrfs_is_on_all_devices_of_its_pool(host: Host) -> None:
    host.disk("sda", "8:0", ("sda2", "8:2"))
    host.disk("sdb", "8:16")
    for name in ("sda2", "sdb"):
        host.link(f"sys/fs/btrfs/0d1e/devices/{name}", f"sys/class/block/{name}")
    host.mounts("0:33 / btrfs /dev/sdb rw,subvol=/@")
    assert device(host, "/") == Device(("sda2", "sdb"), ("sda", "sdb"))


def test_later_mount_wins_and_spaces_are_read(host: Host) -> None:
    host.disk("sda", "8:0")
    host.disk("sdb", "8:16")
    host.mounts("8:0 /my\\040data ext4 /dev/sda rw", "8:16 /my\\040data ext4 /dev/sdb rw")
    assert device(host, "/my data/x") == Device(("sdb",), ("sdb",))


def test_without_mountinfo_nothing_is_claimed(host: Host) -> None:
    assert backing_of(Path("/"), host.proc, host.sys).description == "unknown"
    assert file_system_of(Path("/"), host.proc) == "unknown"


def test_bytes_are_sectors_of_512_with_discards_apart(host: Host) -> None:
    host.write("proc/diskstats", "   8       0 sda 10 0 1000 5 20 0 2000 7 0 300 12 4 0 800 1 0 0\n")
    assert read_disks(host.proc) == {"sda": (512_000, 1_024_000, 409_600, 300, 10)}


def test_device_without_accounting_is_reported(host: Host) -> None:
    host.disk("sda", "8:0")
    host.write("sys/devices/pci/block/sda/queue/iostats", "0\n")
    host.mounts("8:0 / ext4 /dev/sda rw")
    assert device(host, "/") == Device(("sda",), ("sda",), counted=False)


def test_flushing_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match=r"cannot open .*/nowhere to flush its file system: No such file"):
        flush_file_system(tmp_path / "nowhere")
