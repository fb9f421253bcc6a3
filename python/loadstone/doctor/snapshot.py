"""Takes a snapshot of a machine from files, system calls and environment variables, without running programs."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Mapping
from pathlib import Path

from loadstone.doctor.check import Directory, Limit, Machine, Program
from loadstone.experiment.model.directory import default_directory
from loadstone.observe.control_group import control_group
from loadstone.observe.device import mount_of
from loadstone.observe.host_facts import choice_in_brackets
from loadstone.observe.kernel_file import PROC, SYS, list_names, parse_fields, parse_whole, read_number, read_text
from loadstone.observe.listeners import list_listeners
from loadstone.results.folder import ROOT
from loadstone.systems.base.files.cache import cache_root
from loadstone.systems.prerequisites import systems_root

PROGRAMS = ("mvn", "fio", "apt-get", "dnf")
JAVA = ("java", "javac")
CLOCK = "devices/system/clocksource/clocksource0"
VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def take_snapshot(
    proc: Path = PROC, sys: Path = SYS, environment: Mapping[str, str] = os.environ, results: Path = ROOT
) -> Machine:
    """The current state of this machine."""
    kernel = proc / "sys"
    memory = parse_fields(read_text(proc / "meminfo"))
    group = control_group(proc)
    available = [value for value in (memory.get("MemAvailable"), group.memory_available) if value is not None]
    whole_memory = [value for value in (memory.get("MemTotal"), group.memory_bytes) if value is not None]
    ports = read_text(kernel / "net/ipv4/ip_local_port_range").split()
    processes_max, tightest = group.processes or (None, None)
    return Machine(
        architecture=platform.machine(),
        open_files=read_limit(resource.RLIMIT_NOFILE),
        # The limit does not apply to root (setrlimit(2)).
        processes=Limit(None, None) if os.geteuid() == 0 else read_limit(resource.RLIMIT_NPROC),
        threads_max=read_number(kernel / "kernel/threads-max"),
        pid_max=read_number(kernel / "kernel/pid_max"),
        group_processes_max=processes_max,
        group=tightest.name if tightest else "",
        mappings_max=read_number(kernel / "vm/max_map_count"),
        ephemeral_ports=(int(ports[0]), int(ports[1])) if len(ports) == 2 and all(map(str.isdigit, ports)) else None,
        connections_waiting_max=read_number(kernel / "net/core/somaxconn"),
        listeners=list_listeners(proc),
        swap_bytes=memory.get("SwapTotal"),
        swap_used_bytes=memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
        swappiness=read_number(kernel / "vm/swappiness"),
        memory_bytes=min(whole_memory, default=None),
        memory_available_bytes=min(available, default=None),
        governors=read_governors(sys),
        huge_pages=choice_in_brackets(read_text(sys / "kernel/mm/transparent_hugepage/enabled")),
        clock_source=read_text(sys / CLOCK / "current_clocksource"),
        clock_sources=tuple(read_text(sys / CLOCK / "available_clocksource").split()),
        directories=list_directories(results, proc),
        programs=find_programs(environment),
        java_home=environment.get("JAVA_HOME", ""),
    )


def read_limit(which: int) -> Limit:
    """A resource limit of this process."""
    soft, hard = (None if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(which))
    return Limit(soft, hard)


def read_governors(sys: Path) -> tuple[str, ...]:
    """The distinct governors of all processors."""
    top = sys / "devices/system/cpu"
    governors = (
        read_text(top / name / "cpufreq/scaling_governor") for name in list_names(top) if re.fullmatch(r"cpu\d+", name)
    )
    return tuple(sorted({name for name in governors if name}))


def list_directories(results: Path, proc: Path) -> tuple[Directory, ...]:
    """The directories to which Loadstone writes, with their free space and file systems."""
    state, cache = Path(systems_root()), cache_root()
    named = {"results": results, "data": Path(default_directory()), "state": state, "cache": cache}
    directories = []
    for name, path in named.items():
        mount = mount_of(path, proc)
        directories.append(Directory(name, str(path.absolute()), free_bytes(path), mount.type if mount else ""))
    return tuple(directories)


def free_bytes(path: Path) -> int | None:
    """The bytes that this user may still write to a directory's file system. The directory need not exist."""
    path = path.absolute()
    there = next((parent for parent in (path, *path.parents) if parent.exists()), None)
    try:
        return None if there is None else shutil.disk_usage(there).free
    except OSError:
        return None


def find_programs(environment: Mapping[str, str]) -> dict[str, Program]:
    """The installed programs; Java's programs come from JAVA_HOME if it is set."""
    path = environment.get("PATH", os.defpath)
    home = environment.get("JAVA_HOME")
    programs: dict[str, Program] = {}
    for name in (*JAVA, *PROGRAMS):
        java = name in JAVA
        at = shutil.which(name, path=str(Path(home) / "bin") if java and home else path)
        if at is not None:
            programs[name] = Program(at, java_major(at) if java else None)
    return programs


def java_major(program: str) -> int | None:
    """The major version of a program's JDK, from the JDK's `release` file."""
    match = VERSION.search(read_text(Path(program).resolve().parent.parent / "release"))
    return parse_whole(match[1]) if match else None
