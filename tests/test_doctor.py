"""`loadstone doctor`: each check both ways on machines that are made up, then this machine through the command."""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab_support import ROOT, loadstone
from loadstone.doctor.check import Seen
from loadstone.doctor.examination import CHECKS, CLIENTS, examine, fit
from loadstone.doctor.limits import FILES_BESIDE, MAPPINGS_PER_THREAD
from loadstone.doctor.listeners import listeners
from loadstone.doctor.machine import Limit, Listener, Machine, Place, Program
from loadstone.doctor.network import KNOWN_PORTS
from loadstone.doctor.snapshot import java_major, programs, snapshot
from loadstone.doctor.text import WORST, report, table

GB = 1_000_000_000
# A machine on which all is as it should be.
FIT = Machine(
    open_files=Limit(65_536, 65_536),
    processes=Limit(95_000, 95_000),
    threads_max=190_000,
    pid_max=4_194_304,
    mappings_max=262_144,
    ephemeral_ports=(32_768, 60_999),
    connections_waiting_max=4096,
    handshakes_waiting_max=4096,
    listeners=(Listener(22, "sshd", 1),),
    swap_bytes=0,
    swap_used_bytes=0,
    swappiness=60,
    memory_bytes=16 * GB,
    memory_available_bytes=12 * GB,
    governors=("performance",),
    turbo=False,
    huge_pages="madvise",
    clock_source="tsc",
    clock_sources=("tsc", "hpet"),
    places=tuple(Place(name, f"/{name}", 100 * GB, "ext4") for name in ("results", "data", "state", "cache")),
    programs={
        **{name: Program(f"/usr/bin/{name}") for name in ("mvn", "apt-get", "dpkg-deb", "gcc", "cargo")},
        **{name: Program(f"/usr/bin/{name}", 17) for name in ("java", "javac")},
    },
)
NO_LIMIT = Limit(None, None)


def seen(check: str, machine: Machine, clients: int = CLIENTS) -> Seen:
    """What one check finds."""
    (found,) = [each.seen for each in examine(machine, clients) if each.check.name == check]
    return found


def without(*names: str) -> dict[str, Program]:
    """The fit machine's programs but for some."""
    return {name: program for name, program in FIT.programs.items() if name not in names}


def test_a_fit_machine_has_nothing_to_do() -> None:
    found = examine(FIT)
    assert {each.check.name: each.seen.state for each in found} == {check.name: "ok" for check in CHECKS}
    assert all(each.seen.found and not each.seen.fix for each in found)
    assert fit(found)
    assert "to do" not in report(found)


def test_on_the_worst_machine_every_check_complains_with_a_command() -> None:
    for each in examine(WORST):
        assert each.seen.state in ("warn", "fail"), each.check.name
        assert each.seen.fix, each.check.name
    assert not fit(examine(WORST))


def test_what_a_machine_does_not_tell_is_not_held_against_it() -> None:
    states = {each.check.name: each.seen.state for each in examine(replace(Machine(), programs=FIT.programs))}
    assert set(states.values()) == {"ok"}


def with_program(name: str, program: Program) -> dict[str, Program]:
    """The fit machine's programs, one of them another."""
    return {**FIT.programs, name: program}


@pytest.mark.parametrize(
    ("check", "change", "state", "found", "fix"),
    [
        ("open files", {"open_files": NO_LIMIT}, "ok", "unlimited (hard limit unlimited)", ""),
        ("open files", {"open_files": Limit(10_256, 10_256)}, "ok", "10,000 clients need 10,256", ""),
        ("open files", {"open_files": Limit(1024, 1_048_576)}, "warn", "1,024 (hard", r"ulimit -n 65536"),
        ("open files", {"open_files": Limit(1024, 20_000)}, "warn", "hard limit 20,000", r"ulimit -n 20000"),
        ("open files", {"open_files": Limit(1024, 10_255)}, "fail", "need 10,256", r"nofile 65536.*limits\.d"),
        ("threads", {"processes": Limit(11_000, 11_000)}, "ok", "11,000 by ulimit -u", ""),
        ("threads", {"processes": Limit(10_999, 99_999)}, "warn", "need 11,000", "ulimit -u 11000"),
        ("threads", {"processes": Limit(10_999, 10_999)}, "warn", "10,999 by", r"nproc 11000.*limits\.d"),
        ("threads", {"pid_max": 8192}, "warn", "kernel.pid_max", "sudo sysctl -w kernel.pid_max=4194304"),
        ("threads", {"threads_max": 9000}, "warn", "9,000 by", "sudo sysctl -w kernel.threads-max=11000"),
        ("memory mappings", {"mappings_max": 80_000}, "ok", "80,000", ""),
        ("memory mappings", {"mappings_max": 65_530}, "warn", "at most 8,191", r"sysctl -w vm.max_map_count=80000"),
        ("ephemeral ports", {"ephemeral_ports": (20_000, 65_535)}, "ok", "45,536 connections", ""),
        ("ephemeral ports", {"ephemeral_ports": (50_001, 60_000)}, "warn", "twice that", '"20000 65535"'),
        ("ephemeral ports", {"ephemeral_ports": (50_002, 60_000)}, "fail", "9,999 connections", '"20000 65535"'),
        ("ephemeral ports", {"ephemeral_ports": (1024, 65_535)}, "warn", "9042", '"20000 65535"'),
        ("accept queue", {"connections_waiting_max": 128}, "warn", "4,096 would do", "net.core.somaxconn=4096"),
        ("handshake queue", {"handshakes_waiting_max": 128}, "warn", "128", "net.ipv4.tcp_max_syn_backlog=1024"),
        (
            "servers' ports",
            {"listeners": (Listener(6379, "redis-server", 7), Listener(9042, "java", 8), Listener(80, "nginx", 9))},
            "warn",
            "taken: 6379 of redis by redis-server, pid 7, 9042 of cassandra by java, pid 8",
            "kill 7 8   #",
        ),
        ("servers' ports", {"listeners": (Listener(5432),)}, "warn", "5432 of postgres by somebody", "sudo ss -ltnp"),
        ("swap", {"swap_bytes": GB, "swappiness": 10}, "ok", "0 B of 1.00 GB in use", ""),
        ("swap", {"swap_bytes": GB}, "warn", "swappiness 60", "vm.swappiness=1"),
        ("swap", {"swap_bytes": GB, "swap_used_bytes": 1_000_000, "swappiness": 1}, "warn", "1.00 MB", "swapoff -a"),
        ("huge pages", {"huge_pages": "never"}, "ok", "never", ""),
        ("huge pages", {"huge_pages": "always"}, "warn", "always", "echo madvise"),
        ("memory", {"memory_available_bytes": 3 * GB}, "warn", "3.00 GB available of 16.0 GB", "ps "),
        ("memory", {"memory_available_bytes": GB // 10}, "fail", "100 MB", "ps "),
        ("CPU governor", {"governors": ("performance", "powersave")}, "warn", "powersave", "echo performance"),
        (
            "turbo",
            {"turbo": True, "turbo_switch": ("/sys/x/boost", "0")},
            "warn",
            "on",
            r"^echo 0 \| sudo tee /sys/x/boost$",
        ),
        ("clock source", {"clock_source": "hpet"}, "warn", "hpet", r"^echo tsc \| sudo tee /sys/devices"),
        ("clock source", {"clock_source": "xen", "clock_sources": ("xen",)}, "warn", "not offer tsc", "update-grub"),
        ("clock source", {"clock_source": "arch_sys_counter", "architecture": "aarch64"}, "ok", "arch", ""),
        (
            "disk space",
            {"places": (Place("results", "/r", 90 * GB), Place("cache", "/c", 5 * GB))},
            "warn",
            r"5.00 GB free (/c)",
            "LOADSTONE_CACHE",
        ),
        ("disk space", {"places": (Place("results", "/r", GB // 2),)}, "fail", "500 MB", "--results"),
        ("data device", {"places": (Place("data", "/tmp", GB, "tmpfs"),)}, "warn", "/tmp on tmpfs", "TMPDIR"),
        ("JDK", {"programs": without("javac")}, "fail", "no javac", "openjdk-17-jdk"),
        ("JDK", {"programs": without("java", "javac")}, "fail", "no java and no javac", "openjdk-17-jdk"),
        ("JDK", {"programs": with_program("java", Program("/j", 11))}, "fail", "java 11, javac 17", "openjdk-17-jdk"),
        ("JDK", {"programs": with_program("java", Program("/j", 21))}, "ok", "java 21, javac 17", ""),
        ("JDK", {"programs": with_program("java", Program("/j"))}, "warn", "unknown version", "^/j -version"),
        ("Maven", {"programs": without("mvn")}, "fail", "no mvn", "apt-get install maven"),
        ("packages", {"programs": without("apt-get")}, "warn", "no apt-get", "dnf install"),
        ("building", {"programs": without("gcc")}, "warn", "no gcc", "apt-get install gcc"),
        ("building", {"programs": without("gcc", "cargo")}, "warn", "no gcc and no cargo", "rustup"),
    ],
)
def test_each_check_both_ways(check: str, change: dict[str, Any], state: str, found: str, fix: str) -> None:
    said = seen(check, replace(FIT, **change))
    assert said.state == state
    assert found in said.found
    assert re.search(fix, said.fix) if fix else not said.fix


def test_fewer_clients_need_less() -> None:
    narrow = replace(
        FIT, open_files=Limit(1024, 1024), mappings_max=8000, ephemeral_ports=(30_000, 32_000), pid_max=2000
    )
    assert {each.check.name for each in examine(narrow) if each.seen.state != "ok"} == {
        "open files",
        "threads",
        "memory mappings",
        "ephemeral ports",
    }
    assert fit(examine(narrow, 768))
    assert seen("open files", narrow, 768).state == "ok"
    assert seen("open files", narrow, 769).state == "fail"
    assert all(each.seen.state == "ok" for each in examine(narrow, 700))


def test_the_numbers_are_the_engines() -> None:
    source = (ROOT / "crates/engine/src/limits.rs").read_text()
    constants = dict(re.findall(r"^const (\w+): u64 = (\d+);", source, re.MULTILINE))
    assert int(constants["FILES_BESIDE"]) == FILES_BESIDE
    assert int(constants["MAPPINGS_PER_THREAD"]) == MAPPINGS_PER_THREAD


def test_the_text_is_aligned_and_tells_failures_first() -> None:
    lines = report(examine(replace(FIT, huge_pages="always", programs=without("mvn")))).splitlines()
    checks = lines[: len(CHECKS)]
    column = len("warn") + 2 + max(len(check.name) for check in CHECKS) + 2
    assert all(line[column - 1] == " " and line[column] != " " for line in checks)
    assert lines[len(CHECKS) :] == [
        "",
        "to do:",
        "  Maven: it fetches the servers, and RocksDB",
        "    sudo apt-get install maven",
        "  huge pages: with `always` the kernel stops processes to put pages together; Redis and MongoDB warn of it"
        " themselves",
        "    echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ]


def test_the_page_has_the_table_of_the_code() -> None:
    page = (ROOT / "docs/reference/doctor.md").read_text()
    assert table() in page, "docs/reference/doctor.md: replace its table by what loadstone.doctor.text.table() gives"


def test_a_machine_is_read_from_its_files(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    for path, content in {
        proc / "sys/kernel/threads-max": "100\n",
        proc / "sys/kernel/pid_max": "200\n",
        proc / "sys/vm/max_map_count": "300\n",
        proc / "sys/vm/swappiness": "10\n",
        proc / "sys/net/core/somaxconn": "128\n",
        proc / "sys/net/ipv4/tcp_max_syn_backlog": "256\n",
        proc / "sys/net/ipv4/ip_local_port_range": "1000\t2000\n",
        proc / "meminfo": "MemTotal: 10 kB\nMemAvailable: 4 kB\nSwapTotal: 3 kB\nSwapFree: 1 kB\n",
        sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        sys / "devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
        sys / "devices/system/cpu/intel_pstate/no_turbo": "0\n",
        sys / "kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        sys / "devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        sys / "devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    machine = snapshot(proc, sys, {"PATH": str(tmp_path)}, tmp_path / "results")
    assert (machine.threads_max, machine.pid_max, machine.mappings_max) == (100, 200, 300)
    assert (machine.connections_waiting_max, machine.handshakes_waiting_max) == (128, 256)
    assert machine.ephemeral_ports == (1000, 2000)
    assert (machine.memory_bytes, machine.memory_available_bytes) == (10_240, 4096)
    assert (machine.swap_bytes, machine.swap_used_bytes, machine.swappiness) == (3072, 2048, 10)
    assert machine.governors == ("performance", "powersave")
    assert (machine.turbo, machine.turbo_switch) == (True, ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"))
    assert machine.huge_pages == "always"
    assert (machine.clock_source, machine.clock_sources) == ("hpet", ("hpet", "acpi_pm"))
    assert machine.programs == {}
    assert [place.name for place in machine.places] == ["results", "data", "state", "cache"]
    # What is not there yet will be made where there is this much room.
    assert all(place.free_bytes for place in machine.places)


def test_programs_are_those_of_the_path_and_java_those_of_its_home(tmp_path: Path) -> None:
    for name in ("bin/java", "bin/mvn", "jdk/bin/java", "jdk/bin/javac", "home/.cargo/bin/cargo"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    (tmp_path / "jdk/release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n')
    bin_, jdk, home = (str(tmp_path / name) for name in ("bin", "jdk", "home"))
    assert programs({"PATH": bin_}) == {"java": Program(f"{bin_}/java"), "mvn": Program(f"{bin_}/mvn")}
    assert programs({"PATH": bin_, "JAVA_HOME": jdk, "HOME": home}) == {
        "java": Program(f"{jdk}/bin/java", 17),
        "javac": Program(f"{jdk}/bin/javac", 17),
        "mvn": Program(f"{bin_}/mvn"),
        "cargo": Program(f"{home}/.cargo/bin/cargo"),
    }


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("21", 21), ("", None)])
def test_a_jdk_tells_its_version(tmp_path: Path, version: str, major: int | None) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    assert java_major(str(tmp_path / "bin/java")) == major


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_whoever_listens_is_named(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this host has no {host}")
        server.listen()
        port = server.getsockname()[1]
        name = Path("/proc/self/comm").read_text().strip()
        assert Listener(port, name, os.getpid()) in listeners()
    assert port not in [each.port for each in listeners()]


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    expected = examine(snapshot())
    done = loadstone(tmp_path, "doctor", "--json", code=0 if fit(expected) else 1)
    document = json.loads(done.stdout)
    assert document["clients"] == CLIENTS
    assert document["fit"] is fit(expected)
    assert [each["check"] for each in document["checks"]] == [check.name for check in CHECKS]
    assert all(each["found"] and (each["state"] == "ok") == (each["fix"] is None) for each in document["checks"])
    soft = Path("/proc/self/limits").read_text().partition("Max open files")[2].split()[0]
    files = next(each for each in document["checks"] if each["check"] == "open files")
    assert files["found"].startswith("unlimited" if soft == "unlimited" else f"{int(soft):,} ")
    text = loadstone(tmp_path, "doctor", code=0 if fit(expected) else 1).stdout
    assert [line.split("  ")[0].strip() for line in text.splitlines()[: len(CHECKS)]] == [
        each["state"] for each in document["checks"]
    ]


def test_more_clients_than_any_machine_holds_fail(tmp_path: Path) -> None:
    said = loadstone(tmp_path, "doctor", "--clients", "1,000,000", code=1).stdout
    assert re.search(r"^fail  ephemeral ports ", said, re.MULTILINE)
    assert "1,000,000 clients need" in said


@pytest.mark.parametrize("clients", ["many", "0", "-1", "1.5", ""])
def test_a_number_of_clients_that_is_none_is_bad_usage(tmp_path: Path, clients: str) -> None:
    said = loadstone(tmp_path, "doctor", f"--clients={clients}", code=2).stderr
    assert said.startswith(f'error: --clients must be a whole number from 1 on, got "{clients}"\nhint: ')


def test_the_known_ports_are_those_of_the_systems() -> None:
    assert set(KNOWN_PORTS) >= {9042, 7000, 2181, 16000, 16020, 9820, 9870, 6379, 5432}
