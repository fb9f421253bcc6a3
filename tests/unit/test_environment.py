"""environment.json: its content, its omissions, and the facts that comparisons use."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from loadstone import __version__
from loadstone.observe import environment
from loadstone.observe.environment import describe_environment, environment_facts, redact_arguments
from loadstone.observe.host_facts import describe_host
from observe_support import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.usefixtures("engine_variable")
def test_this_host_is_described_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_TEST_SECRET", "hunter2-in-a-variable")
    facts = describe_environment(tmp_path, arguments=["/usr/bin/loadstone", "run", "x.yaml"])
    text = json.dumps(facts)
    assert facts["environment"] == 1
    assert facts["command"] == ["loadstone", "run", "x.yaml"]
    assert facts["versions"]["loadstone"] == facts["versions"]["engine"] == __version__
    assert facts["versions"]["packages"].keys() >= {"numpy", "scipy"}
    (only,) = facts["hosts"]
    assert only["name"] == "localhost"
    assert only["kernel"] == platform.release()
    assert only["data"]["file_system"]
    assert "hunter2" not in text
    assert str(tmp_path) not in text
    # A short host name may also occur within other text of the document.
    if len(platform.node()) > 4:
        assert platform.node() not in text


def test_commit_and_changes_of_tracked_files_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    # On a busy host, git is slow.
    monkeypatch.setattr(environment, "GIT_SECONDS", 60)
    assert describe_environment()["git"] is None
    git("init", "-q")
    assert describe_environment()["git"] is None
    Path("tracked").write_text("1")
    git("add", "tracked")
    git("commit", "-q", "-m", "first")
    Path("untracked").write_text("1")
    assert describe_environment()["git"] == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    Path("tracked").write_text("2")
    assert describe_environment()["git"]["dirty"] is True


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("--set clients=8 -p num_tokens=256 --seed=3", "--set clients=8 -p num_tokens=256 --seed=3"),
        ("-p cassandra.password=hunter2 -p x=1", "-p cassandra.password=*** -p x=1"),
        ("--set=redis.auth=hunter2", "--set=redis.auth=***"),
        ("--password hunter2 run", "--password *** run"),
        ("-mode native user=alice password=hunter2", "-mode native user=*** password=***"),
        ("s3.secret-access-key=hunter2", "s3.secret-access-key=***"),
        ('{"password":"hunter2"}', '{"password":***'),
        ("redis://alice:hunter2@db:6379/0", "redis://***@db:6379/0"),
        ("/home/alice/db rocksdb.dir=/home/alice/db,/Users/bob", "~/db rocksdb.dir=~/db,~"),
    ],
)
def test_command_line_is_recorded_without_secrets_and_names(text: str, shared: str) -> None:
    assert redact_arguments(["/home/alice/bin/loadstone", *text.split(" ")]) == ["loadstone", *shared.split(" ")]


def craft_host(host: Host) -> None:
    block = (
        "processor\t: {at}\nmodel name\t: Xeon\nphysical id\t: 0\ncore id\t\t: {core}\nflags\t\t: fpu hypervisor\n\n"
    )
    host.write("proc/cpuinfo", "".join(block.format(at=at, core=at % 2) for at in range(4)))
    host.write("proc/meminfo", "MemTotal: 8000000 kB\nSwapTotal: 4 kB\n")
    host.write("proc/sys/kernel/osrelease", "6.1.0\n")
    host.write("proc/sys/vm/swappiness", "60\n")
    host.write("sys/devices/system/cpu/smt/active", "1\n")
    host.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    for index, (level, kind, size) in enumerate([(1, "Data", "32K"), (1, "Instruction", "32K"), (3, "Unified", "8M")]):
        for name, value in (("level", level), ("type", kind), ("size", size)):
            host.write(f"sys/devices/system/cpu/cpu0/cache/index{index}/{name}", f"{value}\n")
    host.write("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    host.disk("nvme0n1", "259:0")
    top = "sys/devices/pci/block/nvme0n1"
    for name, value in (("size", "2000"), ("device/model", "FAST 1"), ("queue/rotational", "0")):
        host.write(f"{top}/{name}", f"{value}\n")
    host.write(f"{top}/queue/scheduler", "[none] mq-deadline\n")
    host.link("sys/block/nvme0n1", top)
    host.write("sys/block/loop0/size", "500\n")
    host.mounts("259:0 / ext4 /dev/nvme0n1 rw,commit=5,usrquota=alice,clientaddr=10.0.0.1")
    host.write("proc/self/cgroup", "0::/\n")


def test_a_crafted_host_is_described_in_full(host: Host) -> None:
    craft_host(host)
    facts = describe_host(Path("/data"), proc=host.proc, sys=host.sys)
    usable = facts["cpu"].pop("usable")
    assert usable >= 1
    assert facts["cpu"] == {
        "model": "Xeon",
        "processors": 4,
        "cores": 2,
        "sockets": 1,
        "smt": True,
        "governor": "powersave",
        "caches": {"L1d": 32768, "L1i": 32768, "L3": 8 << 20},
    }
    assert facts["memory"] == {"bytes": 8_192_000_000, "swap_bytes": 4096, "transparent_huge_pages": "always"}
    assert facts["disks"] == [
        {"name": "nvme0n1", "model": "FAST 1", "bytes": 1_024_000, "rotational": False, "scheduler": "none"}
    ]
    assert facts["data"] == {
        "file_system": "ext4",
        "options": ["rw", "relatime", "commit=5"],
        "device": "nvme0n1",
        "disks": ["nvme0n1"],
    }
    assert facts["kernel"] == "6.1.0"
    assert facts["settings"] == {"vm.swappiness": 60}
    assert facts["virtualisation"] == {"hypervisor": True}


def test_a_host_that_hides_everything_is_still_described(host: Host) -> None:
    facts = describe_host(Path("/data"), proc=host.proc, sys=host.sys)
    assert facts["name"] == "localhost"
    assert not {"memory", "data", "settings", "virtualisation", "clock_source", "disks"} & facts.keys()
    assert facts["cpu"]["processors"] == os.cpu_count()


def host_facts(model: str = "Xeon", **limits: float) -> dict[str, object]:
    cpu = {"model": model, "processors": 8, "usable": 6}
    return {"cpu": cpu, "memory": {"bytes": 100}, "limits": limits, "kernel": "6.1"}


def test_a_fingerprint_is_what_processes_may_use() -> None:
    assert environment_facts({"hosts": [host_facts()]}) == {
        "hosts": 1,
        "cpu_model": "Xeon",
        "cpus": 6,
        "memory_bytes": 100,
        "kernel": "6.1",
    }
    limited = environment_facts({"hosts": [host_facts(processors=1.5, memory_bytes=50)]})
    assert (limited["cpus"], limited["memory_bytes"]) == (1.5, 50)


def test_differing_hosts_change_the_fingerprint() -> None:
    facts = environment_facts({"hosts": [host_facts(), host_facts("EPYC"), host_facts()]})
    assert (facts["hosts"], facts["cpu_model"], facts["cpus"]) == (3, "Xeon + EPYC", 6)
    assert environment_facts({}) == {}
    assert environment_facts({"hosts": [{"name": "localhost"}]}) == {"hosts": 1}
