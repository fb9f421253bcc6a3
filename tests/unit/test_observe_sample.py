"""Samples of crafted hosts: their content, and the gaps if a kernel or container hides data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadstone.observe.control_group import control_group
from loadstone.observe.process import read_process, take_census
from loadstone.observe.sample import Clocks, HostSample, take_sample
from observe_support import Host, read

NOW = Clocks(5_000_000_000, 1_700_000_000_000_000_000, 90_000)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def full(host: Host) -> None:
    """A host without hidden data."""
    host.write("proc/stat", "cpu  10 1 5 100 4 0 2 3 0 0\ncpu0 10 1 5 100 4 0 2 3 0 0\nintr 9 9\nctxt 1\n")
    host.write(
        "proc/meminfo",
        "MemTotal: 8000 kB\nMemAvailable: 6000 kB\nCached: 2000 kB\nDirty: 12 kB\nWriteback: 4 kB\nHugePages_Free: 0\n",
    )
    host.write(
        "proc/diskstats",
        "8 0 sda 1 0 8 1 2 0 16 2 0 30 3 0 0 0 0\n8 0 sdb 1 0 8 1 2 0 16 2 0 30 3 1 0 4 9\n7 0 loop0 " + "0 " * 14,
    )
    host.write(
        "proc/net/dev", "Inter-| Receive\n face |bytes\n  eth0: 700 1 0 0 0 0 0 0 80 1\n  eth1:0 0 0 0 0 0 0 0 0 0\n"
    )
    host.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=70\n")
    host.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n")


def test_one_look_as_a_line(host: Host) -> None:
    full(host)
    host.process(42, name="a (strange) name", ticks=17)
    line = take_sample({"engine": 42, "gone": 43}, proc=host.proc, clocks=NOW).to_json()
    assert line == {
        "observed": 1,
        "unix_ns": 1_700_000_000_000_000_000,
        "monotonic_ns": 5_000_000_000,
        "boot_ticks": 90_000,
        "ticks_per_second": 100,
        "processors": {"cpu": (10, 1, 5, 100, 4, 0, 2, 3), "cpu0": (10, 1, 5, 100, 4, 0, 2, 3)},
        "memory": {"total": 8_192_000, "available": 6_144_000, "cached": 2_048_000, "dirty": 12_288, "writeback": 4096},
        "disks": {"sda": (4096, 8192, 0, 30, 1), "sdb": (4096, 8192, 2048, 30, 1)},
        "network": {"eth0": (700, 80)},
        "pressure": {"cpu": (5, 0), "io": (77, 70)},
        "processes": {
            "engine": {
                "pid": 42,
                "parent": 1,
                "start_ticks": 100,
                "cpu_ticks": 17,
                "children_ticks": 0,
                "threads": 4,
                "memory_bytes": 256 * 4096,
                "faults_minor": 5,
                "faults_major": 3,
                "read_bytes": 0,
                "written_bytes": 0,
            }
        },
    }


def test_sample_survives_a_round_trip_and_truncation_not(host: Host) -> None:
    full(host)
    host.process(42)
    sample = take_sample({"engine": 42}, proc=host.proc, clocks=NOW)
    line = json.dumps(sample.to_json())
    host.write("observed.jsonl", f"{line}\n{line[:50]}")
    assert list(read(host.root / "observed.jsonl")) == [sample]


def test_opaque_host_is_an_empty_sample(host: Host) -> None:
    sample = take_sample({"engine": 1}, control_group(host.proc), host.proc, NOW)
    assert sample == HostSample(NOW)


@pytest.mark.parametrize("torn", ["cpu  1 2", "cpu  a b c d e f g h", "", "\0\0"])
def test_what_makes_no_sense_is_absent(host: Host, torn: str) -> None:
    for file in ("stat", "meminfo", "diskstats", "net/dev", "pressure/io", "42/stat", "42/io"):
        host.write(f"proc/{file}", torn)
    assert take_sample({"engine": 42}, proc=host.proc, clocks=NOW) == HostSample(NOW)


def test_unreadable_bytes_do_not_hide_the_process(host: Host) -> None:
    host.process(42, ticks=3, io=None)
    process = read_process(42, host.proc)
    assert process is not None
    assert (process.cpu_ticks, process.read_bytes, process.written_bytes) == (3, None, None)
    assert "read_bytes" not in process.to_json()


def test_limited_second_version_group_includes_its_ancestors(host: Host) -> None:
    top = host.root / "cgroup"
    host.write("proc/self/cgroup", "0::/pod/engine\n")
    host.mounts(f"0:30 {top} cgroup2 cgroup2 rw,nsdelegate")
    host.write("cgroup/pod/cpu.max", "150000 100000\n")
    host.write("cgroup/pod/memory.max", "4194304\n")
    host.write("cgroup/pod/memory.current", "3000000\n")
    host.write("cgroup/pod/memory.stat", "anon 1000000\ninactive_file 1500000\n")
    host.write("cgroup/pids.max", "300\n")
    host.write("cgroup/pod/pids.max", "200\n")
    host.write("cgroup/pod/engine/pids.max", "max\n")
    host.write("cgroup/pod/engine/cpu.max", "max 100000\n")
    host.write("cgroup/pod/engine/memory.max", "max\n")
    host.write("cgroup/pod/engine/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 250\n")
    group = control_group(host.proc)
    assert (group.processors, group.memory_bytes) == (1.5, 4_194_304)
    assert group.cpu_wait_ns == 250_000
    assert group.processes == (200, top / "pod")
    full(host)
    sample = take_sample({}, group, host.proc, NOW)
    # The host has 6 MB available; the group has its limit minus the memory in use, where idle cache is not in use.
    assert sample.memory["available"] == 4_194_304 - 3_000_000 + 1_500_000
    assert sample.throttled_ns == 250_000


def test_limited_first_version_group_is_recognised_from_inside(host: Host) -> None:
    cpu, memory = host.root / "cpu", host.root / "memory"
    host.write("proc/self/cgroup", "5:pids:/docker/f00\n4:memory:/docker/f00\n1:cpu,cpuacct:/docker/f00\n0::/\n")
    host.mounts(
        f"0:30 {host.root / 'unified'} cgroup2 cgroup2 rw",
        f"0:31 {cpu} cgroup cgroup rw,cpu,cpuacct",
        f"0:32 {memory} cgroup cgroup rw,memory",
        f"0:33 {host.root / 'pids'} cgroup cgroup rw,pids",
    )
    host.write("unified/pids.max", "1\n")
    host.write("pids/pids.max", "4096\n")
    host.write("cpu/cpu.cfs_quota_us", "50000\n")
    host.write("cpu/cpu.cfs_period_us", "100000\n")
    host.write("cpu/cpu.stat", "nr_periods 1\nthrottled_time 7\n")
    host.write("memory/memory.limit_in_bytes", "1048576\n")
    group = control_group(host.proc)
    assert (group.processors, group.memory_bytes, group.cpu_wait_ns) == (0.5, 1_048_576, 7)
    assert group.processes == (4096, host.root / "pids")


def test_unlimited_control_groups_have_no_limit(host: Host) -> None:
    host.write("proc/self/cgroup", "5:pids:/\n4:memory:/\n1:cpu:/\n")
    host.mounts(*(f"0:31 {host.root / name} cgroup cgroup rw,{name}" for name in ("cpu", "memory", "pids")))
    host.write("pids/pids.max", "max\n")
    host.write("cpu/cpu.cfs_quota_us", "-1\n")
    host.write("cpu/cpu.cfs_period_us", "100000\n")
    host.write("memory/memory.limit_in_bytes", "9223372036854771712\n")
    group = control_group(host.proc)
    assert (group.processors, group.memory_bytes, group.memory_available) == (None, None, None)
    assert group.processes is None


def crowd(host: Host) -> None:
    """The lab (10) with an engine (11) and its helper (12), a separate server (20), two strangers, the kernel."""
    host.process(1, 0, "init", io=5)
    host.process(2, 0, "kthreadd", kernel=True, io=None)
    host.process(3, 2, "kworker/0:1", kernel=True, ticks=70, io=None)
    host.process(10, 1, "loadstone", ticks=1)
    host.process(11, 10, "engine", ticks=2, io=100)
    host.process(12, 11, "helper", ticks=4, io=1000)
    host.process(20, 1, "java", ticks=8, io=10_000)
    host.process(30, 1, "backup", ticks=16, io=100_000)


def test_census_separates_lab_kernel_and_foreign_work(host: Host) -> None:
    crowd(host)
    result = take_census(iter([11, 20]), host.proc, us=10)
    assert result.kernel == {(2, 100): 0, (3, 100): 70}
    assert result.family == {(10, 100): 1, (11, 100): 2, (12, 100): 4, (20, 100): 8}
    assert result.heads == {(20, 100)}
    assert (result.family_bytes, result.others_bytes) == (11_100, 100_005)


def test_partial_view_of_the_host_claims_no_bytes(host: Host) -> None:
    crowd(host)
    (host.proc / "30/io").unlink()
    assert take_census([11], host.proc, us=10).others_bytes is None
    crowd(host)
    assert take_census([11], host.proc, us=10).others_bytes is not None
    (host.proc / "2/stat").unlink()
    result = take_census([11], host.proc, us=10)
    assert (result.family_bytes, result.others_bytes) == (None, None)
