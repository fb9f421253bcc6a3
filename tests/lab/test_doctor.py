"""`loadstone doctor`: each check in both directions on invented machines, then this machine through the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab_support import ROOT, loadstone
from loadstone.doctor.check import CheckResult, Directory, Limit, Machine, Program
from loadstone.doctor.diagnosis import CHECKS, CLIENTS, examine_machine, is_fit, render_report
from loadstone.doctor.limits import KNOWN_PORTS, MAPPINGS_PER_THREAD, OTHER_FILES
from loadstone.doctor.snapshot import take_snapshot
from loadstone.observe.listeners import Listener

GB = 1_000_000_000
# A machine without problems.
FIT = Machine(
    open_files=Limit(65_536, 65_536),
    processes=Limit(95_000, 95_000),
    threads_max=190_000,
    pid_max=4_194_304,
    mappings_max=262_144,
    ephemeral_ports=(32_768, 60_999),
    connections_waiting_max=4096,
    listeners=(Listener(22, "sshd", 1),),
    swap_bytes=0,
    swap_used_bytes=0,
    swappiness=60,
    memory_bytes=16 * GB,
    memory_available_bytes=12 * GB,
    governors=("performance",),
    huge_pages="madvise",
    clock_source="tsc",
    clock_sources=("tsc", "hpet"),
    directories=tuple(Directory(name, f"/{name}", 100 * GB, "ext4") for name in ("results", "data", "state", "cache")),
    programs={
        **{name: Program(f"/usr/bin/{name}") for name in ("mvn", "fio", "apt-get")},
        **{name: Program(f"/usr/bin/{name}", 17) for name in ("java", "javac")},
    },
)
# A machine with every problem: the commands that fix these problems are the examples on the page.
WORST = Machine(
    open_files=Limit(1024, 4096),
    processes=Limit(4096, 4096),
    threads_max=192_730,
    pid_max=32_768,
    mappings_max=65_530,
    ephemeral_ports=(55_000, 60_999),
    connections_waiting_max=128,
    listeners=(Listener(6379, "redis-server", 4711),),
    swap_bytes=8_000_000_000,
    swap_used_bytes=100_000_000,
    swappiness=60,
    memory_bytes=2_000_000_000,
    memory_available_bytes=100_000_000,
    governors=("powersave",),
    huge_pages="always",
    clock_source="hpet",
    clock_sources=("hpet", "tsc"),
    directories=(Directory("data", "/tmp", 500_000_000, "tmpfs"),),
    unsupported_faults={"power": "file systems on loop devices: it needs root"},
)
NO_LIMIT = Limit(None, None)


def examine_check(check: str, machine: Machine, clients: int = CLIENTS) -> CheckResult:
    """The finding of one check."""
    (results,) = [finding.result for finding in examine_machine(machine, clients) if finding.check.name == check]
    return results


def remove_programs(*names: str) -> dict[str, Program]:
    """The fit machine's programs without the named programs."""
    return {name: program for name, program in FIT.programs.items() if name not in names}


def test_a_fit_machine_has_nothing_to_do() -> None:
    rows = examine_machine(FIT)
    assert {row.check.name: row.result.state for row in rows} == {check.name: "ok" for check in CHECKS}
    assert all(row.result.text and not row.result.fix for row in rows)
    assert is_fit(rows)
    assert "to do" not in render_report(rows)


def test_worst_machine_gets_a_command_from_every_check() -> None:
    for finding in examine_machine(WORST):
        assert finding.result.state in ("warn", "fail"), finding.check.name
        assert finding.result.fix, finding.check.name
    assert not is_fit(examine_machine(WORST))


def test_unknown_facts_cause_no_complaint() -> None:
    states = {
        finding.check.name: finding.result.state
        for finding in examine_machine(replace(Machine(), programs=FIT.programs))
    }
    assert set(states.values()) == {"ok"}


def with_program(name: str, program: Program) -> dict[str, Program]:
    """The fit machine's programs with one program replaced."""
    return {**FIT.programs, name: program}


def with_dnf(*names: str) -> dict[str, Program]:
    """The programs of a machine with dnf instead of apt, without the named programs."""
    return {**remove_programs("apt-get", *names), "dnf": Program("/usr/bin/dnf")}


@pytest.mark.parametrize(
    ("check", "change", "state", "expected", "fix"),
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
        (
            "threads",
            {"group_processes_max": 11_000, "group": "user.slice"},
            "ok",
            "11,000 by pids.max of user.slice",
            "",
        ),
        (
            "threads",
            {"group_processes_max": 9000, "group": "user-1000.slice"},
            "warn",
            "9,000 by pids.max of user-1000.slice; 10,000 clients in threads need 11,000",
            r"^sudo systemctl set-property user-1000\.slice TasksMax=11000$",
        ),
        (
            "threads",
            {"group_processes_max": 9000, "group": "cgroup"},
            "warn",
            "9,000 by pids.max of the control group",
            r"^docker update --pids-limit 11000 CONTAINER ",
        ),
        # The smallest of several limits counts.
        (
            "threads",
            {"group_processes_max": 9000, "group": "user.slice", "pid_max": 8192},
            "warn",
            "8,192 by",
            r"kernel\.pid_max",
        ),
        ("memory mappings", {"mappings_max": 80_000}, "ok", "80,000", ""),
        ("memory mappings", {"mappings_max": 65_530}, "warn", "at most 8,191", r"sysctl -w vm.max_map_count=80000"),
        ("ephemeral ports", {"ephemeral_ports": (20_000, 65_535)}, "ok", "45,536 connections", ""),
        ("ephemeral ports", {"ephemeral_ports": (50_001, 60_000)}, "warn", "twice as many", '"20000 65535"'),
        ("ephemeral ports", {"ephemeral_ports": (50_002, 60_000)}, "fail", "9,999 connections", '"20000 65535"'),
        ("ephemeral ports", {"ephemeral_ports": (1024, 65_535)}, "warn", "9042", '"20000 65535"'),
        ("accept queue", {"connections_waiting_max": 128}, "warn", "4,096 is enough", "net.core.somaxconn=4096"),
        (
            "servers' ports",
            {"listeners": (Listener(6379, "redis-server", 7), Listener(9042, "java", 8), Listener(80, "nginx", 9))},
            "warn",
            "taken: 6379 of redis by redis-server, pid 7, 9042 of cassandra by java, pid 8",
            "loadstone systems down NAME",
        ),
        (
            "servers' ports",
            {"listeners": (Listener(5432),)},
            "warn",
            "5432 of postgres by an unknown process",
            "sudo ss -ltnp",
        ),
        ("swap", {"swap_bytes": GB, "swappiness": 10}, "ok", "0 B of 1.00 GB in use", ""),
        ("swap", {"swap_bytes": GB}, "warn", "swappiness 60", "vm.swappiness=1"),
        ("swap", {"swap_bytes": GB, "swap_used_bytes": 1_000_000, "swappiness": 1}, "warn", "1.00 MB", "swapoff -a"),
        ("faults", {"unsupported_faults": {}}, "ok", "all", ""),
        ("faults", {"unsupported_faults": {"full": "x: needs root"}}, "warn", "not full (x: needs root)", "sudo"),
        ("faults", {"unsupported_faults": {"kill": "no pidfd"}}, "warn", "not kill (no pidfd)", ""),
        ("huge pages", {"huge_pages": "never"}, "ok", "never", ""),
        ("huge pages", {"huge_pages": "always"}, "warn", "always", "echo madvise"),
        ("memory", {"memory_available_bytes": 3 * GB}, "warn", "3.00 GB available of 16.0 GB", "ps "),
        ("memory", {"memory_available_bytes": GB // 10}, "fail", "100 MB", "ps "),
        ("CPU governor", {"governors": ("performance", "powersave")}, "warn", "powersave", "echo performance"),
        ("clock source", {"clock_source": "hpet"}, "warn", "hpet", r"^echo tsc \| sudo tee /sys/devices"),
        (
            "clock source",
            {"clock_source": "xen", "clock_sources": ("xen",)},
            "warn",
            "not offer tsc",
            r"^sudo dmesg \| grep -i tsc   # shows why",
        ),
        ("clock source", {"clock_source": "arch_sys_counter", "architecture": "aarch64"}, "ok", "arch", ""),
        (
            "disk space",
            {"directories": (Directory("results", "/r", 90 * GB), Directory("cache", "/c", 5 * GB))},
            "warn",
            r"5.00 GB free (/c)",
            "LOADSTONE_CACHE",
        ),
        (
            "disk space",
            {"directories": (Directory("results", "/r", GB // 2),)},
            "fail",
            "500 MB",
            "^loadstone run .* --results",
        ),
        (
            "disk space",
            {
                "directories": (
                    Directory("data", "/d", 5 * GB),
                    Directory("state", "/s", 90 * GB),
                    Directory("cache", "/c", GB // 2),
                )
            },
            "fail",
            "cache 500 MB free (/d, /c)",
            "^export TMPDIR=/large/disk LOADSTONE_CACHE=/large/disk$",
        ),
        (
            "disk space",
            {"directories": tuple(Directory(name, "/", 5 * GB) for name in ("results", "data", "state", "cache"))},
            "warn",
            "cache 5.00 GB free (/)",
            "^export TMPDIR=/large/disk XDG_STATE_HOME=/large/disk LOADSTONE_CACHE=/large/disk"
            " && loadstone run FILE.yaml --results /large/disk$",
        ),
        ("data device", {"directories": (Directory("data", "/tmp", GB, "tmpfs"),)}, "warn", "/tmp on tmpfs", "TMPDIR"),
        ("JDK", {"programs": remove_programs("javac")}, "fail", "no javac", "openjdk-17-jdk"),
        ("JDK", {"programs": remove_programs("java", "javac")}, "fail", "no java and no javac", "openjdk-17-jdk"),
        ("JDK", {"programs": with_program("java", Program("/j", 11))}, "fail", "java 11, javac 17", "openjdk-17-jdk"),
        (
            "JDK",
            {"programs": with_program("java", Program("/j", 11)), "java_home": "/opt/jdk-11"},
            "fail",
            "java 11",
            "openjdk-17-jdk-headless   # then unset JAVA_HOME",
        ),
        (
            "JDK",
            {"programs": remove_programs("java", "javac"), "java_home": "/gone"},
            "fail",
            "no java",
            "openjdk-17-jdk-headless   # then unset JAVA_HOME",
        ),
        ("JDK", {"programs": remove_programs("javac")}, "fail", "no javac", "jdk-headless$"),
        ("JDK", {"programs": with_dnf("javac")}, "fail", "no javac", "^sudo dnf install java-17-openjdk-devel$"),
        ("JDK", {"programs": with_program("java", Program("/j", 21))}, "ok", "java 21, javac 17", ""),
        ("JDK", {"programs": with_program("java", Program("/j"))}, "warn", "unknown version", "^/j -version"),
        ("Maven", {"programs": remove_programs("mvn")}, "fail", "no mvn", "apt-get install maven"),
        ("Maven", {"programs": with_dnf("mvn")}, "fail", "no mvn", "^sudo dnf install maven$"),
        ("fio", {"programs": remove_programs("fio")}, "warn", "no fio", "apt-get install fio"),
    ],
)
def test_each_check_both_ways(check: str, change: dict[str, Any], state: str, expected: str, fix: str) -> None:
    result = examine_check(check, replace(FIT, **change))
    assert result.state == state
    assert expected in result.text
    assert re.search(fix, result.fix) if fix else not result.fix


@pytest.mark.parametrize(
    ("clients", "state", "fix"),
    [
        (64_512, "ok", ""),
        (64_513, "fail", "^# no sysctl helps: use several server addresses, or at most 64,512 clients$"),
    ],
)
def test_no_port_range_is_proposed_beyond_one_address(clients: int, state: str, fix: str) -> None:
    widest = replace(FIT, ephemeral_ports=(1024, 65_535))
    result = examine_check("ephemeral ports", widest, clients)
    assert result.state == state
    assert re.search(fix, result.fix) if fix else not result.fix
    assert ("one server address accepts at most 64,512" in result.text) is (state == "fail")
    # Up to this number of clients, a wider range of ports helps.
    narrow = replace(FIT, ephemeral_ports=(32_768, 60_999))
    assert (
        examine_check("ephemeral ports", narrow, 64_512).fix
        == 'sudo sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
    )
    assert examine_check("ephemeral ports", narrow, 64_513).fix.startswith("# no sysctl helps")


def test_fewer_clients_need_less() -> None:
    narrow = replace(
        FIT, open_files=Limit(1024, 1024), mappings_max=8000, ephemeral_ports=(30_000, 32_000), pid_max=2000
    )
    assert {finding.check.name for finding in examine_machine(narrow) if finding.result.state != "ok"} == {
        "open files",
        "threads",
        "memory mappings",
        "ephemeral ports",
    }
    assert is_fit(examine_machine(narrow, 768))
    assert examine_check("open files", narrow, 768).state == "ok"
    assert examine_check("open files", narrow, 769).state == "fail"
    assert all(finding.result.state == "ok" for finding in examine_machine(narrow, 700))


def test_the_numbers_are_the_engines() -> None:
    source = (ROOT / "crates/measure/src/limits.rs").read_text()
    constants = dict(re.findall(r"^const (\w+): u64 = (\d+);", source, re.MULTILINE))
    assert int(constants["FILES_BESIDE"]) == OTHER_FILES
    assert int(constants["MAPPINGS_PER_THREAD"]) == MAPPINGS_PER_THREAD


def test_the_text_is_aligned_with_failures_first() -> None:
    lines = render_report(
        examine_machine(replace(FIT, huge_pages="always", programs=remove_programs("mvn")))
    ).splitlines()
    checks = lines[: len(CHECKS)]
    column = len("warn") + 2 + max(len(check.name) for check in CHECKS) + 2
    assert all(line[column - 1] == " " and line[column] != " " for line in checks)
    assert lines[len(CHECKS) :] == [
        "",
        "to do:",
        "  Maven: it downloads the servers and RocksDB",
        "    sudo apt-get install maven",
        "  huge pages: with `always`, the kernel stops processes to assemble pages; Redis and MongoDB also warn"
        " about this",
        "    echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ]


def table() -> str:
    """The table of docs/reference/doctor.md."""
    states = {finding.check.name: finding.result.state for finding in examine_machine(WORST)}
    lines = ["| check | wanted | why | else |", "|---|---|---|---|"]
    for check in CHECKS:
        cells = (check.name, check.condition, check.why, states[check.name])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table_of_the_code() -> None:
    page = (ROOT / "docs/reference/doctor.md").read_text()
    assert table() in page, f"docs/reference/doctor.md: replace its table by\n{table()}"


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    expected = examine_machine(take_snapshot())
    done = loadstone(tmp_path, "doctor", "--json", code=0 if is_fit(expected) else 1)
    document = json.loads(done.stdout)
    assert document["clients"] == CLIENTS
    assert document["fit"] is is_fit(expected)
    assert [row["check"] for row in document["checks"]] == [check.name for check in CHECKS]
    assert all(row["found"] and (row["state"] == "ok") == (row["fix"] is None) for row in document["checks"])
    soft = Path("/proc/self/limits").read_text().partition("Max open files")[2].split()[0]
    files = next(row for row in document["checks"] if row["check"] == "open files")
    assert files["found"].startswith("unlimited" if soft == "unlimited" else f"{int(soft):,} ")
    text = loadstone(tmp_path, "doctor", code=0 if is_fit(expected) else 1).stdout
    # Another test may start or stop a server between the two runs.
    for line, row in zip(text.splitlines(), document["checks"], strict=False):
        assert row["check"] == "servers' ports" or line.split("  ")[0].strip() == row["state"]


def test_more_clients_than_any_machine_holds_fail(tmp_path: Path) -> None:
    output = loadstone(tmp_path, "doctor", "--clients", "1,000,000", code=1).stdout
    assert re.search(r"^fail  ephemeral ports ", output, re.MULTILINE)
    assert "1,000,000 clients need" in output


@pytest.mark.parametrize("clients", ["many", "0", "-1", "1.5", ""])
def test_an_invalid_number_of_clients_is_bad_usage(tmp_path: Path, clients: str) -> None:
    stderr = loadstone(tmp_path, "doctor", f"--clients={clients}", code=2).stderr
    assert stderr.startswith(f'error: --clients must be a whole number of at least 1, got "{clients}"\nhint: ')


def test_the_known_ports_are_those_of_the_systems() -> None:
    assert set(KNOWN_PORTS) >= {9042, 7000, 2181, 16000, 16020, 9820, 9870, 6379, 5432}
