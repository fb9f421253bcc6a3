"""page-cache: reads were served from memory, not from the device."""

from __future__ import annotations

from loadstone.format import units
from loadstone.judge.figures import bytes_in_window
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "page-cache"
# A read that returns at least this much reads a part of a file, not a value.
LARGE_BYTES = 64 << 10
HINT = (
    "no action needed if you are measuring memory; to measure the device, use data several times larger than memory,"
    " or drop the caches first"
)

# A smaller share from the device is treated as this share, so that the printed "at least" is still true.
LEAST = 0.001
# If the device served fewer reads than this, the message states that it served none.
HALF_READ = 0.5


def check_page_cache(trial: TrialResult, settings: Settings) -> Looks:
    """Compares the bytes read from the device with the bytes that reads returned."""
    claimed = "device" in (settings.claims, trial.facts.get("claims"))
    severity = Severity.INVALID if claimed else Severity.NOTE
    here = (trial.trial,)
    if trial.facts.get("data_in") == "memory":
        if claimed:
            message = "`claims: device` is set, but the store keeps its data in memory"
            yield Finding(NAME, severity, message, "omit `claims`", here)
        return
    if trial.facts.get("file_system") == "tmpfs":
        hint = "put the data on a file system that has a device"
        yield Finding(NAME, severity, "the data is on tmpfs, which has no device", hint, here)
        return
    read, returned = bytes_in_window(trial, "device.read"), trial.value("returned")
    if claimed and trial.value("stored") and not returned and trial.facts.get("durability") in ("none", "os"):
        message = "`claims: device` is set, but writes only reach the page cache"
        yield Finding(NAME, severity, message, "sync the writes, or omit `claims`", here)
        return
    if claimed and returned is None and trial.value("stored") is None:
        message = "`claims: device` is set, but nothing shows how many bytes were read or written"
        yield Finding(NAME, Severity.UNCHECKED, message, "import a log that states these bytes, or omit `claims`", here)
        return
    if returned is None or (read is None and not claimed):
        lacks = "the bytes that reads returned" if returned is None else "the device's bytes"
        yield NotLooked(NAME, f"{lacks} were not measured")
        return
    if not returned:
        return
    if read is None:
        message = "`claims: device` is set, but the device's bytes were not measured"
        yield Finding(NAME, severity, message, "run where the host can be observed", here)
        return
    counted = miss_share(trial, read)
    share = read / returned if counted is None else counted
    if share < settings.check_threshold(NAME, "claimed_share" if claimed else "share"):
        least = units.format_percent(1 - max(share, LEAST))
        if counted is None:
            message = f"reads returned {units.format_size(returned)}, and the device read {units.format_size(read)}"
            message += f": at least {least} of the bytes came from memory"
        else:
            reads = trial.value("read.count") or 0
            served, every = counted * reads, units.count_noun(reads, "read")
            message = f"the device served none of {every}: all of them came from memory"
            if served >= HALF_READ:
                message = f"the device served at most {served:,.0f} of {every}: at least {least} came from memory"
        yield Finding(NAME, severity, message, HINT, here, size=1 - share)
    elif claimed and counted is None and has_small_reads(trial, returned):
        # Every observed device counts its reads, but scans, and fio with several jobs, have no `read.count`.
        is_lacking = "device.reads" not in trial.values
        yield NotLooked(NAME, "the reads that the device served were not counted", always_known=is_lacking)


def share_from_device(trial: TrialResult) -> float | None:
    """The share of the returned data that the device read; None if it was not measured, or if nothing was returned."""
    read, returned = bytes_in_window(trial, "device.read"), trial.value("returned")
    if read is None or not returned:
        return None
    counted = miss_share(trial, read)
    return read / returned if counted is None else counted


def has_small_reads(trial: TrialResult, returned: float) -> bool:
    """Whether reads may have returned less than LARGE_BYTES each; there are at most as many reads as operations."""
    reads = trial.value("read.count") or trial.value("operations")
    return not reads or returned < LARGE_BYTES * reads


def miss_share(trial: TrialResult, read: float) -> float | None:
    """An upper bound on the share of reads that the device served; None if reads were large or not counted.

    A device reads whole blocks: 4,096 bytes for a value of 100 bytes, or fewer if the data is compressed. The number of
    bytes alone could therefore hide that most values were cached, or that none were. A read of a file is large, and
    becomes several requests to the device or a part of one, so for files, bytes are counted instead of reads.
    """
    every, observed, reads = trial.value("device.read"), trial.value("device.reads"), trial.value("read.count")
    if observed is None or not reads or not has_small_reads(trial, trial.value("returned") or 0):
        return None
    # The device's count of reads includes the warm-up, as its byte count does, so it is scaled to the window.
    return observed * (read / every if every else 1.0) / reads
