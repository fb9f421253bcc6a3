"""What is behind a directory: mounts, devices, their bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.observe.device import Device, backing_of, device_of, file_system_of
from loadstone.observe.device_bytes import DeviceBytes, snapshot
from loadstone.observe.flush import flush
from observe_support import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def device(host: Host, directory: str) -> Device | None:
    return device_of(Path(directory), host.proc, host.sys)


def words(host: Host, directory: str) -> str:
    return backing_of(Path(directory), host.proc, host.sys).words


def test_a_partition_of_an_nvme_disk_is_counted_itself_and_its_disk_is_below(host: Host) -> None:
    host.disk("nvme0n1", "259:0", ("nvme0n1p1", "259:1"), ("nvme0n1p2", "259:2"))
    host.mounts("259:1 / ext4 /dev/root rw", "259:2 /data xfs /dev/nvme0n1p2 rw")
    assert device(host, "/data/rocksdb/not-there-yet") == Device(("nvme0n1p2",), ("nvme0n1",))
    assert device(host, "/database") == Device(("nvme0n1p1",), ("nvme0n1",))
    assert words(host, "/data") == "nvme0n1p2 on nvme0n1"
    assert file_system_of(Path("/data"), host.proc) == "xfs"


def test_a_logical_volume_on_luks_on_two_disks_is_followed_to_both(host: Host) -> None:
    host.disk("sda", "8:0", ("sda1", "8:1"))
    host.disk("sdb", "8:16")
    host.virtual("dm-0", "253:0", "sda1")
    host.virtual("dm-1", "253:1", "dm-0", "sdb")
    host.mounts("8:1 / ext4 /dev/sda1 rw", "253:1 /srv ext4 /dev/mapper/vg-data rw")
    assert device(host, "/srv/x") == Device(("dm-1",), ("sda", "sdb"))


def test_a_partition_of_an_array_is_followed_through_it(host: Host) -> None:
    host.disk("sda", "8:0")
    host.disk("sdb", "8:16")
    host.virtual("md0", "9:0", "sda", "sdb")
    host.write("sys/devices/virtual/block/md0/md0p1/partition", "1")
    host.link("sys/dev/block/259:7", "sys/devices/virtual/block/md0/md0p1")
    host.mounts("259:7 / ext4 /dev/md0p1 rw")
    assert device(host, "/") == Device(("md0p1",), ("sda", "sdb"))


def test_an_overlay_is_where_its_upper_directory_is(host: Host) -> None:
    host.disk("vdb", "254:16")
    upper = host.root / "upper"
    upper.mkdir()
    point = str(host.root)
    host.mounts(
        f"254:16 {point} ext4 /dev/vdb rw", f"0:50 /merged overlay overlay rw,lowerdir=/l,upperdir={upper},workdir=/w"
    )
    assert device(host, "/merged/db") == Device(("vdb",), ("vdb",))


def test_an_overlay_seen_from_inside_a_container_is_unknown_and_not_none(host: Host) -> None:
    host.mounts("0:50 / overlay overlay rw,upperdir=/var/lib/docker/overlay2/0f3/diff,workdir=/w")
    assert device(host, "/db") is None
    assert words(host, "/db") == "unknown (overlay)"


def test_memory_has_no_device_and_a_network_none_of_ours(host: Host) -> None:
    host.mounts(
        "8:1 / ext4 /dev/sda1 rw", "0:23 /dev/shm tmpfs tmpfs rw", "0:60 /nfs nfs4 filer:/x rw", "0:61 /z zfs p/z rw"
    )
    assert [words(host, path) for path in ("/dev/shm/db", "/nfs/db", "/z/db", "/db")] == [
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


def test_a_loop_device_is_on_the_disk_of_its_file(host: Host) -> None:
    host.disk("vda", "254:0")
    host.virtual("loop3", "7:3")
    host.write("sys/devices/virtual/block/loop3/loop/backing_file", "/images/disk.img\n")
    host.mounts("254:0 / ext4 /dev/vda rw", "7:3 /mnt ext4 /dev/loop3 rw")
    assert device(host, "/mnt") == Device(("loop3",), ("vda",))


def test_of_two_mounts_at_one_point_the_later_counts_and_spaces_are_read(host: Host) -> None:
    host.disk("sda", "8:0")
    host.disk("sdb", "8:16")
    host.mounts("8:0 /my\\040data ext4 /dev/sda rw", "8:16 /my\\040data ext4 /dev/sdb rw")
    assert device(host, "/my data/x") == Device(("sdb",), ("sdb",))


def test_without_mountinfo_nothing_is_claimed(host: Host) -> None:
    assert backing_of(Path("/"), host.proc, host.sys).words == "unknown"
    assert file_system_of(Path("/"), host.proc) == "unknown"


DISKSTATS = """\
   8       0 sda 10 0 1000 5 20 0 2000 7 0 300 12 4 0 800 1 0 0
 259       2 nvme0n1p2 1 0 16 0 2 0 32 0 0 4 4
"""


def test_bytes_are_sectors_of_512_with_discards_apart(host: Host) -> None:
    host.write("proc/diskstats", DISKSTATS)
    assert snapshot(Device(("sda",), ("sda",)), host.proc) == DeviceBytes(512_000, 1_024_000, 409_600)
    # Kernels before 4.18 write no discards.
    found = snapshot(Device(("nvme0n1p2",), ("nvme0n1",)), host.proc)
    assert found == DeviceBytes(16 * 512, 32 * 512, 0)


def test_a_device_that_is_gone_or_keeps_no_account_has_no_bytes(host: Host) -> None:
    host.write("proc/diskstats", DISKSTATS)
    assert snapshot(Device(("sda", "sdz"), ("sda",)), host.proc) is None
    assert snapshot(None, host.proc) is None
    host.disk("sda", "8:0")
    host.write("sys/devices/pci/block/sda/queue/iostats", "0\n")
    host.mounts("8:0 / ext4 /dev/sda rw")
    silent = device(host, "/")
    assert silent == Device(("sda",), ("sda",), counted=False)
    assert snapshot(silent, host.proc) is None


def test_counters_that_begin_anew_have_gained_what_they_show() -> None:
    assert DeviceBytes(100, 20, 0).since(DeviceBytes(40, 5000, 0)) == DeviceBytes(60, 20, 0)


def test_what_is_written_and_flushed_here_is_on_the_device(tmp_path: Path) -> None:
    backing = backing_of(tmp_path)
    flush(tmp_path)
    before = snapshot(backing.device)
    (tmp_path / "file").write_bytes(os.urandom(8_000_000))
    assert flush(tmp_path) >= 0
    after = snapshot(backing.device)
    if backing.device is None:
        pytest.skip(f"the tests run where bytes cannot be counted: {backing.words}")
    assert before is not None
    assert after is not None
    assert after.since(before).written >= 8_000_000


def test_flushing_a_directory_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match=r"cannot open .*/nowhere to flush its file system: No such file"):
        flush(tmp_path / "nowhere")
