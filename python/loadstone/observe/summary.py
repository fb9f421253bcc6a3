"""Computes the figures of a window, with their names in results (docs/reference/observation.md).

Uncertain figures are omitted: an omitted figure is better than a misleading one.
"""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.observe.device import Device
from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.process import Census
from loadstone.observe.sample import LAB
from loadstone.observe.window import BY_SOMEBODY, IDLE, Window
from loadstone.results.value import Value

# Processor time is counted in ticks of 10 ms: with fewer ticks over all processors than this, a share is meaningless.
TICKS_MIN = 100
# The minimum duration for figures of one process or device; at this duration, a tick is 5 %.
ELAPSED_NS_MIN = 200_000_000
LOOPBACK = "lo"
# The prefix of servers' names and figures. loadstone.observe.server_usage computes the figures.
SERVER = "server."


def window_figures(
    window: Window, device: Device | None = None, interfaces: frozenset[str] | None = None
) -> list[Value]:
    """The figures of a window.

    `device` contains the data. `interfaces` are the interfaces to count; None means all except the loopback interface.
    """
    if window.samples < 2:
        return []
    shares = [
        *processor_figures(window),
        *device_figures(window, device),
        *io_others(window, device),
        *pressure_figures(window),
    ]
    further = [*memory_figures(window), *network_figures(window, interfaces), *process_figures(window)]
    return [Value(metric, value, unit, window.samples) for metric, value, unit in (*shares, *further)]


Figure = tuple[str, float, str]


def processor_figures(window: Window) -> Iterator[Figure]:
    """The shares of CPU time that was busy, waiting for I/O, stolen by a hypervisor, used by other processes, or
    withheld by a quota."""
    ticks = sum(window.ticks.values())
    if ticks >= TICKS_MIN:
        steal = window.ticks["steal"]
        idle = sum(window.ticks[column] for column in IDLE)
        yield "cpu.busy", (ticks - idle - steal) / ticks, "share"
        yield "cpu.iowait", window.ticks["iowait"] / ticks, "share"
        yield "cpu.steal", steal / ticks, "share"
    attributed = window.attributed
    before, after = census_pair(window)
    family = after.family_ticks_since(before) if before and after else None
    if before and after and family is not None and ticks >= TICKS_MIN:
        # The two censuses cover all work in the window. A server counts the work of its children only when they exit,
        # so samples would attribute that work to the wrong part of the window.
        used = sum(window.ticks[column] for column in BY_SOMEBODY)
        yield "cpu.others", max(used - family - after.kernel_ticks_since(before), 0) / ticks, "share"
    elif attributed.all >= TICKS_MIN:
        unattributed = attributed.used - attributed.watched - kernel_and_lab_ticks(window)
        yield "cpu.others", max(unattributed, 0) / attributed.all, "share"
    if window.throttled_ns is not None and window.elapsed_ns >= ELAPSED_NS_MIN and window.last:
        count = max(len(window.last.processors) - 1, 1)
        yield "cpu.throttled", min(window.throttled_ns / (window.elapsed_ns * count), 1.0), "share"


def kernel_and_lab_ticks(window: Window) -> int:
    """The ticks of kernel threads and of the lab's unobserved descendants; 0 unless both ends have a census."""
    before, after = census_pair(window)
    if before is None or after is None or window.first is None or window.last is None:
        return 0
    known = [process.key for sample in (window.first, window.last) for process in sample.processes.values()]
    return after.kernel_ticks_since(before) + after.relatives_ticks_since(before, known)


def census_pair(window: Window) -> tuple[Census | None, Census | None]:
    """The censuses at both ends of a window."""
    return (window.first.census if window.first else None, window.last.census if window.last else None)


def device_figures(window: Window, device: Device | None) -> Iterator[Figure]:
    """The I/O of the file system's device, and the share of time in which the busiest disk under it was working."""
    if device is None or not device.counted:
        return
    parts = [window.disks[part] for part in device.parts if part in window.disks]
    if parts and len(parts) == len(device.parts):
        read, written, discarded, _, reads = (sum(column) for column in zip(*parts, strict=True))
        yield "device.read", read, "B"
        yield "device.written", written, "B"
        yield "device.discarded", discarded, "B"
        yield "device.reads", reads, "operations"
    if (busy := device_utilisation(window, device)) is not None:
        yield "device.utilisation", busy, "share"


def device_utilisation(window: Window, device: Device) -> float | None:
    """The share of the window in which the busiest disk was working; at 1, many drives can still do more."""
    busy_ms = [window.disks[disk][3] for disk in device.disks if disk in window.disks]
    if not busy_ms or window.elapsed_ns < ELAPSED_NS_MIN:
        return None
    return min(max(busy_ms) * 1e6 / window.elapsed_ns, 1.0)


def io_others(window: Window, device: Device | None) -> Iterator[Figure]:
    """A lower bound on the share of the disks' time that other processes used.

    The kernel does the write-back, so it is unknown which process caused a disk's bytes, and to which disk a process's
    bytes went. Other processes are charged with the bytes that they wrote or read, but at most with the disks' bytes
    minus the bytes of the lab's family. They are charged only while the disks were working: a log line on an idle disk
    is not interference.
    """
    before, after = census_pair(window)
    if before is None or after is None or device is None or not device.counted:
        return
    known, busy = after.bytes_since(before), device_utilisation(window, device)
    if known is None or busy is None or any(disk not in window.disks for disk in device.disks):
        return
    family_bytes, other_bytes = known
    disk_bytes = sum(sum(window.disks[disk][:2]) for disk in device.disks)
    charged = min(other_bytes, max(disk_bytes - family_bytes, 0))
    yield "io.others", busy * charged / disk_bytes if disk_bytes else 0.0, "share"
    yield "io.others_bytes", other_bytes, "B"


def pressure_figures(window: Window) -> Iterator[Figure]:
    """The shares of the window in which some task waited for a processor, for I/O, or for memory."""
    if window.elapsed_ns >= ELAPSED_NS_MIN:
        for name, (some_us, _) in window.pressure.items():
            yield f"pressure.{name}", min(some_us * 1e3 / window.elapsed_ns, 1.0), "share"


def memory_figures(window: Window) -> Iterator[Figure]:
    """The minimum of available memory, the mean page cache, and the maximum of dirty memory."""
    if window.available_min is not None:
        yield "memory.available_min", window.available_min, "B"
    if window.cache_samples:
        yield "memory.cache", window.cache_sum / window.cache_samples, "B"
    if window.dirty_max is not None:
        yield "memory.dirty_max", window.dirty_max, "B"


def network_figures(window: Window, interfaces: frozenset[str] | None) -> Iterator[Figure]:
    """The bytes that the interfaces received and sent."""
    rows = [row for name, row in window.network.items() if (name in interfaces if interfaces else name != LOOPBACK)]
    if rows:
        yield "network.received", sum(row[0] for row in rows), "B"
        yield "network.sent", sum(row[1] for row in rows), "B"


def process_figures(window: Window) -> Iterator[Figure]:
    """The largest resident memory, the CPU usage and the major page faults of each watched process, except the lab and
    servers."""
    for name, usage in window.processes.items():
        if name == LAB or name.startswith(SERVER):
            continue
        yield f"{name}.memory_max", usage.memory_max, "B"
        if usage.elapsed_ns >= ELAPSED_NS_MIN:
            yield f"{name}.cpu", usage.cpu_ticks / TICKS_PER_SECOND * 1e9 / usage.elapsed_ns, "processors"
            yield f"{name}.faults_major", usage.faults_major, "faults"
