"""Describes a host for results: processor, memory, disks, kernel and the limits that apply.

Nothing in the description identifies a person or the machine: it has no serial numbers, addresses or host names.
"""

from __future__ import annotations

import os
import platform
import resource
from pathlib import Path
from typing import Any

from loadstone.observe.control_group import control_group
from loadstone.observe.device import Mount, backing_of
from loadstone.observe.host_counters import SECTOR_BYTES
from loadstone.observe.kernel_file import PROC, SYS, list_names, parse_fields, parse_whole, read_number, read_text

# Block devices that are not disks, such as memory and loop devices.
NO_DISKS = ("loop", "ram", "zram", "fd", "sr")
# Mount options with harmless values, such as sizes and modes; other options may contain addresses, paths and names.
OPTIONS = (
    frozenset({"allocsize", "barrier", "cache", "commit", "compress", "compress-force", "data", "dax", "discard"})
    | {"errors", "fsync_mode", "jqfmt", "logbsize", "logbufs", "max_batch_time", "min_batch_time", "mode"}
    | {"nconnect", "nr_inodes", "proto", "rsize", "size", "stripe", "sunit", "swidth", "timeo", "vers"}
    | {"wsize"}
)
# Kernel settings, which determine, for example, when dirty pages are written and whether memory is swapped.
SETTINGS = (
    "vm/dirty_background_ratio",
    "vm/dirty_expire_centisecs",
    "vm/dirty_ratio",
    "vm/max_map_count",
    "vm/overcommit_memory",
    "vm/swappiness",
)
LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC, "memlock": resource.RLIMIT_MEMLOCK}


def describe_host(directory: Path | None = None, *, proc: Path = PROC, sys: Path = SYS) -> dict[str, Any]:
    """This host, with the file system of `directory`; unknown values are omitted. Sizes are in bytes."""
    return drop_unknown(
        {
            "name": "localhost",
            "cpu": describe_processor(proc, sys),
            "memory": describe_memory(proc, sys),
            "disks": describe_disks(sys),
            "data": None if directory is None else describe_data(directory, proc, sys),
            "limits": describe_limits(proc),
            "kernel": read_text(proc / "sys/kernel/osrelease") or platform.release(),
            "architecture": platform.machine(),
            "distribution": distribution_name(),
            "clock_source": read_text(sys / "devices/system/clocksource/clocksource0/current_clocksource"),
            "settings": {name.replace("/", "."): read_number(proc / "sys" / name) for name in SETTINGS},
            "virtualisation": describe_virtualisation(proc, sys),
        }
    )


def drop_unknown(document: dict[str, Any]) -> dict[str, Any]:
    """A copy of a description without unknown values: None, empty strings and empty parts."""
    cleaned = {name: drop_unknown(value) if isinstance(value, dict) else value for name, value in document.items()}
    return {name: value for name, value in cleaned.items() if value is not None and value not in ("", {}, [])}


def describe_processor(proc: Path, sys: Path) -> dict[str, Any]:
    """The model, number and properties of the processors."""
    blocks = [dict(parse_pairs(block)) for block in read_text(proc / "cpuinfo").split("\n\n") if "processor" in block]
    first = blocks[0] if blocks else {}
    # Without socket numbers, as on most ARM machines, cores cannot be distinguished from threads here.
    cores = {(block["physical id"], block["core id"]) for block in blocks if {"physical id", "core id"} <= block.keys()}
    smt = read_number(sys / "devices/system/cpu/smt/active")
    return {
        "model": first.get("model name") or arm_model(first) or platform.processor(),
        "processors": len(blocks) or os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        "cores": len(cores) or None,
        "sockets": len({socket for socket, _ in cores}) or None,
        "smt": None if smt is None else bool(smt),
        "microcode": first.get("microcode"),
        "governor": read_text(sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "caches": list_caches(sys),
    }


def parse_pairs(block: str) -> list[tuple[str, str]]:
    """The names and values in lines of the form `name : value`."""
    split = (line.partition(":") for line in block.splitlines())
    return [(name.strip(), value.strip()) for name, colon, value in split if colon]


def arm_model(block: dict[str, str]) -> str:
    """The processor's identification from ARM's cpuinfo, which contains no model name."""
    if "CPU implementer" not in block or "CPU part" not in block:
        return ""
    return f"implementer {block['CPU implementer']} part {block['CPU part']}"


def list_caches(sys: Path) -> dict[str, int]:
    """The sizes of the first processor's caches in bytes, keyed by name (`L1d`, `L2`)."""
    caches: dict[str, int] = {}
    top = sys / "devices/system/cpu/cpu0/cache"
    for index in list_names(top):
        size, kind = read_text(top / index / "size"), read_text(top / index / "type")
        scale = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 0)
        if scale and (count := parse_whole(size[:-1])) is not None:
            suffix = {"Data": "d", "Instruction": "i"}.get(kind, "")
            caches[f"L{read_text(top / index / 'level')}{suffix}"] = count * scale
    return caches


def describe_memory(proc: Path, sys: Path) -> dict[str, Any]:
    """The sizes of memory and swap, and the mode of transparent huge pages."""
    meminfo = parse_fields(read_text(proc / "meminfo"))
    return {
        "bytes": meminfo.get("MemTotal"),
        "swap_bytes": meminfo.get("SwapTotal"),
        "transparent_huge_pages": choice_in_brackets(read_text(sys / "kernel/mm/transparent_hugepage/enabled")),
    }


def choice_in_brackets(choices: str) -> str:
    """The choice in brackets, such as `madvise` in `always [madvise] never`."""
    return choices.partition("[")[2].partition("]")[0]


def describe_disks(sys: Path) -> list[dict[str, Any]]:
    """The disks and arrays of this host, with the settings of their kernel queues."""
    disks = []
    for name in list_names(sys / "block"):
        top = sys / "block" / name
        sectors = read_number(top / "size")
        if name.rstrip("0123456789") in NO_DISKS or not sectors:
            continue
        rotational = read_number(top / "queue/rotational")
        disk = {
            "name": name,
            "model": read_text(top / "device/model") or read_text(top / "dm/name"),
            "bytes": sectors * SECTOR_BYTES,
            # For a virtual disk, this is what the hypervisor claims, which may be wrong.
            "rotational": None if rotational is None else bool(rotational),
            "scheduler": choice_in_brackets(read_text(top / "queue/scheduler")) or read_text(top / "queue/scheduler"),
            "write_cache": read_text(top / "queue/write_cache"),
        }
        disks.append(drop_unknown(disk))
    return disks


def describe_data(directory: Path, proc: Path, sys: Path) -> dict[str, Any]:
    """The location of the data: the file system, mount options, and a description of the device."""
    backing = backing_of(directory, proc, sys)
    if backing.mount is None:
        return {}
    return {
        "file_system": backing.mount.type,
        "options": mount_options(backing.mount),
        "device": backing.description,
        "disks": [] if backing.device is None else list(backing.device.disks),
    }


def mount_options(mount: Mount) -> list[str]:
    """The options of a mount, in order and without duplicates, except options that may reveal people or addresses."""
    every = dict.fromkeys((*mount.options, *mount.super_options))
    return [option for option in every if "=" not in option or option.partition("=")[0] in OPTIONS]


def describe_limits(proc: Path) -> dict[str, Any]:
    """The limits of this process: the limits of its control group, if any, and its soft resource limits."""
    group = control_group(proc)
    limits: dict[str, Any] = {"processors": group.processors, "memory_bytes": group.memory_bytes}
    for name, which in LIMITS.items():
        soft, _ = resource.getrlimit(which)
        limits[name] = "unlimited" if soft == resource.RLIM_INFINITY else soft
    return limits


def distribution_name() -> str:
    """The name of the operating system, such as `Debian GNU/Linux 12 (bookworm)`."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()


def describe_virtualisation(proc: Path, sys: Path) -> dict[str, Any]:
    """Whether the processor reports a hypervisor, and the vendor and product that the firmware reports."""
    flags = next((line for line in read_text(proc / "cpuinfo").splitlines() if line.startswith("flags")), "")
    return {
        "hypervisor": "hypervisor" in flags.split() if flags else None,
        "vendor": read_text(sys / "class/dmi/id/sys_vendor"),
        "product": read_text(sys / "class/dmi/id/product_name"),
    }
