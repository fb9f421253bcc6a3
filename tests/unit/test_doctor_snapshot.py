"""The facts that the doctor reads from a machine: crafted /proc and /sys, programs, and listening processes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from loadstone.doctor.check import Program
from loadstone.doctor.snapshot import find_programs, java_major, take_snapshot
from loadstone.observe.listeners import Listener, list_listeners
from observe_support import Host


def test_a_machine_is_read_from_its_files(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    for path, content in {
        proc / "sys/kernel/threads-max": "100\n",
        proc / "sys/kernel/pid_max": "200\n",
        proc / "sys/vm/max_map_count": "300\n",
        proc / "sys/vm/swappiness": "10\n",
        proc / "sys/net/core/somaxconn": "128\n",
        proc / "sys/net/ipv4/ip_local_port_range": "1000\t2000\n",
        proc / "meminfo": "MemTotal: 10 kB\nMemAvailable: 4 kB\nSwapTotal: 3 kB\nSwapFree: 1 kB\n",
        sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        sys / "devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
        sys / "kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        sys / "devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        sys / "devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    machine = take_snapshot(proc, sys, {"PATH": str(tmp_path)}, tmp_path / "results")
    assert (machine.threads_max, machine.pid_max, machine.mappings_max) == (100, 200, 300)
    assert machine.connections_waiting_max == 128
    assert machine.ephemeral_ports == (1000, 2000)
    assert (machine.memory_bytes, machine.memory_available_bytes) == (10_240, 4096)
    assert (machine.swap_bytes, machine.swap_used_bytes, machine.swappiness) == (3072, 2048, 10)
    assert machine.governors == ("performance", "powersave")
    assert machine.huge_pages == "always"
    assert (machine.clock_source, machine.clock_sources) == ("hpet", ("hpet", "acpi_pm"))
    assert machine.programs == {}
    assert [place.name for place in machine.directories] == ["results", "data", "state", "cache"]
    # A missing directory will be created on the file system with this free space.
    assert all(place.free_bytes for place in machine.directories)


def test_tightest_control_group_limits_the_threads(tmp_path: Path) -> None:
    host = Host(tmp_path)

    def limit(group: str, most: str) -> tuple[int | None, str]:
        """The limit on processes, and the group that sets it, if `group` allows `most` processes."""
        host.write(f"cgroup/{group}/pids.max", f"{most}\n")
        machine = take_snapshot(host.proc, host.sys, {"PATH": str(tmp_path)}, tmp_path / "results")
        return machine.group_processes_max, machine.group

    host.write("proc/self/cgroup", "0::/user.slice/user-1000.slice\n")
    host.mounts(f"0:30 {tmp_path / 'cgroup'} cgroup2 cgroup2 rw")
    assert limit("user.slice/user-1000.slice", "max") == (None, "")
    assert limit("user.slice", "9000") == (9000, "user.slice")
    assert limit("user.slice/user-1000.slice", "5000") == (5000, "user-1000.slice")


def test_programs_come_from_the_path_and_java_home(tmp_path: Path) -> None:
    for name in ("bin/java", "bin/mvn", "bin/dnf", "jdk/bin/java", "jdk/bin/javac"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    (tmp_path / "jdk/release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n')
    bin_, jdk = (str(tmp_path / name) for name in ("bin", "jdk"))
    known = {"mvn": Program(f"{bin_}/mvn"), "dnf": Program(f"{bin_}/dnf")}
    assert find_programs({"PATH": bin_}) == {"java": Program(f"{bin_}/java"), **known}
    assert find_programs({"PATH": bin_, "JAVA_HOME": jdk}) == {
        "java": Program(f"{jdk}/bin/java", 17),
        "javac": Program(f"{jdk}/bin/javac", 17),
        **known,
    }


@pytest.mark.parametrize("home", ["", "/opt/jdk"])
def test_java_home_takes_precedence_over_the_path(tmp_path: Path, home: str) -> None:
    environment = {"PATH": str(tmp_path), **({"JAVA_HOME": home} if home else {})}
    assert take_snapshot(tmp_path, tmp_path, environment, tmp_path / "results").java_home == home


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("21", 21), ("", None)])
def test_the_version_of_a_jdk_is_read(tmp_path: Path, version: str, major: int | None) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    assert java_major(str(tmp_path / "bin/java")) == major


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_process_that_listens_is_named(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this host has no {host}")
        server.listen()
        port = server.getsockname()[1]
        name = Path("/proc/self/comm").read_text().strip()
        assert Listener(port, name, os.getpid()) in list_listeners()
    assert port not in [listener.port for listener in list_listeners()]
