"""Room on the disks."""

from __future__ import annotations

from collections.abc import Collection

from loadstone.doctor.check import Check, Seen, unknown
from loadstone.doctor.machine import Machine
from loadstone.format import units

ENOUGH_BYTES, LEAST_BYTES = 10_000_000_000, 1_000_000_000
# What moves each place elsewhere.
VARIABLES = {"data": "TMPDIR", "state": "XDG_STATE_HOME", "cache": "LOADSTONE_CACHE"}
RESULTS = "loadstone run FILE.yaml --results /large/disk"
IN_MEMORY = ("tmpfs", "ramfs")


def room(machine: Machine, _: int) -> Seen:
    """Every place that is written to has room, and data are on a device."""
    known = [place for place in machine.places if place.free_bytes is not None]
    if not known:
        return unknown()
    found = ", ".join(f"{place.name} {units.size(place.free_bytes or 0)} free" for place in known)
    short = [place for place in known if (place.free_bytes or 0) < ENOUGH_BYTES]
    if not short:
        return Seen("ok", found)
    least = min(place.free_bytes or 0 for place in short)
    paths = ", ".join(dict.fromkeys(place.path for place in short))
    return Seen("fail" if least < LEAST_BYTES else "warn", f"{found} ({paths})", moved([each.name for each in short]))


def moved(names: Collection[str]) -> str:
    """The line that moves these places to another disk."""
    named = " ".join(f"{variable}=/large/disk" for name, variable in VARIABLES.items() if name in names)
    return " && ".join([*([f"export {named}"] if named else []), *([RESULTS] if "results" in names else [])])


def device(machine: Machine, _: int) -> Seen:
    """Data in memory have no device to measure."""
    place = next((place for place in machine.places if place.name == "data"), None)
    if place is None or not place.file_system:
        return unknown()
    found = f"{place.path} on {place.file_system}"
    if place.file_system in IN_MEMORY:
        return Seen("warn", found, moved(["data"]))
    return Seen("ok", found)


CHECKS = (
    Check(
        "disk space",
        f"{units.size(ENOUGH_BYTES)} free for results, data, servers' state and cache",
        "a full disk ends a run, and a nearly full one is slower",
        room,
    ),
    Check(
        "data device",
        "the directory for data (`TMPDIR`, else /var/tmp) is on a device",
        "in tmpfs nothing reaches a device: syncs are free, and the page cache is the store",
        device,
    ),
)
