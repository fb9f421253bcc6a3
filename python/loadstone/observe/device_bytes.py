"""Device bytes: what went to and came from a device, by /proc/diskstats (the kernel's admin-guide/iostats)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.device import Device
from loadstone.observe.kernel_file import PROC, text, whole

# Whatever the device's own sectors are, the kernel counts in these.
SECTOR_BYTES = 512
# Times in /proc/diskstats are ms in 32 bits and begin anew after 50 busy days; sectors are 64 bits on what we measure.
WRAP_MS = 1 << 32

# read B, written B, discarded B, busy ms, reads.
Disk = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes since the devices came up, or between two moments; what was discarded (trimmed) was not written."""

    read: int
    written: int
    discarded: int

    def since(self, before: DeviceBytes) -> DeviceBytes:
        """What was added; counters that began anew do not make it negative."""
        return DeviceBytes(
            delta(before.read, self.read),
            delta(before.written, self.written),
            delta(before.discarded, self.discarded),
        )


def snapshot(device: Device | None, proc: Path = PROC) -> DeviceBytes | None:
    """The bytes of a device so far, all its parts together; None where there is none or it keeps no account."""
    if device is None or not device.counted:
        return None
    found = disks(proc)
    if any(part not in found for part in device.parts):
        return None
    read, written, discarded, *_ = (sum(column) for column in zip(*(found[part] for part in device.parts), strict=True))
    return DeviceBytes(read, written, discarded)


def disks(proc: Path = PROC) -> dict[str, Disk]:
    """Every block device's counters by its name: whole disks, partitions, logical volumes."""
    found: dict[str, Disk] = {}
    for line in text(proc / "diskstats").splitlines():
        words = line.split()
        if len(words) < 14:
            continue
        reads, read, written, busy = (whole(words[at]) for at in (3, 5, 9, 12))
        # Kernels before 4.18 do not know discards.
        discarded = whole(words[16]) if len(words) > 16 else 0
        if None not in (counts := (reads, read, written, busy, discarded)):
            reads, read, written, busy, discarded = (count or 0 for count in counts)
            found[words[2]] = (read * SECTOR_BYTES, written * SECTOR_BYTES, discarded * SECTOR_BYTES, busy, reads)
    return found


def delta(before: int, after: int) -> int:
    """What a counter has gained; one that is smaller than before was reset and has gained what it shows since."""
    return after - before if after >= before else after


def delta_ms(before: int, after: int) -> int:
    """What a 32-bit time has gained: one that falls from the upper half into the lower went round."""
    wrapped = after < WRAP_MS // 2 <= before < WRAP_MS
    return after - before + WRAP_MS if wrapped else delta(before, after)
