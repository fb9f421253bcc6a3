"""Figures of a window, from crafted samples; a second of two processors has 200 ticks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadstone.observe.device import Device
from loadstone.observe.sample import LAB, HostSample
from loadstone.observe.summary import window_figures as figures_of
from loadstone.observe.window import counter_delta
from observe_support import make_census, process, sample, window_of

SDA = Device(("sda1",), ("sda",))
MB = 1_000_000


def figures(
    *samples: HostSample, device: Device | None = None, interfaces: frozenset[str] | None = None
) -> dict[str, float]:
    return {value.metric: value.value for value in figures_of(window_of(samples), device, interfaces)}


def test_remaining_cpu_time_is_foreign() -> None:
    first = sample(0, processes={LAB: process(1000), "engine": process(7)})
    last = sample(10, busy=1200, stolen=100, processes={LAB: process(1000, 100), "engine": process(7, 900)})
    values = figures(first, last)
    assert (values["cpu.busy"], values["cpu.steal"], values["cpu.iowait"]) == (0.6, 0.05, 0.0)
    assert values["cpu.others"] == pytest.approx((1200 - 1000) / 2000)
    assert values["engine.cpu"] == pytest.approx(0.9)


def test_kernel_threads_and_unwatched_children_are_not_foreign() -> None:
    before = make_census({(9, 1): 10}, {(1000, 50): 0, (8, 60): 0})
    after = make_census({(9, 1): 110, (10, 700): 40}, {(1000, 50): 0, (8, 60): 50})
    values = figures(sample(0, census=before), sample(10, busy=300, census=after))
    assert values["cpu.others"] == pytest.approx((300 - 100 - 40 - 50) / 2000)


def test_work_of_exited_children_is_not_foreign() -> None:
    """The backends of a PostgreSQL, and a command whose parent is a launcher, exit just before the last sample."""
    server, command = process(7, parent=1), process(9, parent=8)
    before = make_census(family={(1000, 50): 0, (7, 50): 0, (8, 60): 0}, heads=frozenset({(7, 50)}))
    after = make_census(family={(1000, 50): 300, (7, 50): 1000}, heads=frozenset({(7, 50)}))
    values = figures(
        sample(0, processes={LAB: process(1000), "server": server}, census=before),
        sample(1, busy=130, processes={LAB: process(1000), "server": server, "command": command}),
        sample(9, busy=1250, processes={LAB: process(1000), "server": server, "command": command}),
        sample(10, busy=1350, processes={LAB: process(1000), "server": process(7, parent=1)}, census=after),
    )
    assert values["cpu.others"] == pytest.approx((1350 - 1300) / 2000)


def test_ticks_of_an_ended_engine_are_the_labs() -> None:
    samples = [
        sample(0, processes={LAB: process(1000), "engine": process(7, 500)}),
        sample(1, busy=90, processes={LAB: process(1000), "engine": process(7, 590)}),
        sample(2, busy=150, processes={LAB: process(1000, children=650)}),
        sample(3, busy=150, processes={LAB: process(1000, children=650)}),
    ]
    assert figures(*samples)["cpu.others"] == 0.0
    assert figures(*samples)["engine.cpu"] == pytest.approx(0.9)


def test_ended_foreign_process_costs_one_pair_of_samples() -> None:
    server = process(7, 0, parent=1)
    samples = [
        sample(0, processes={LAB: process(1000), "server": server}),
        sample(1, busy=100, processes={LAB: process(1000)}),
        sample(2, busy=120, processes={LAB: process(1000)}),
    ]
    # The owner of the first 100 ticks is unknown; 20 ticks in the following second are foreign.
    assert figures(*samples)["cpu.others"] == pytest.approx(20 / 200)


def test_process_watched_late_counts_from_its_start() -> None:
    began = process(7, 80, start=250)
    values = figures(sample(2), sample(3, busy=80, processes={LAB: process(1000), "engine": began}))
    assert values["cpu.others"] == 0.0
    old = process(7, 5000, start=20)
    assert "cpu.others" not in figures(sample(2), sample(3, busy=80, processes={LAB: process(1000), "engine": old}))


def test_reused_pid_is_another_process() -> None:
    first = sample(1, processes={LAB: process(1000), "engine": process(7, 900, faults=50)})
    last = sample(
        6, busy=10, processes={LAB: process(1000, children=905), "engine": process(7, 3, start=300, faults=1)}
    )
    values = figures(first, last)
    assert "engine.cpu" not in values
    assert values["cpu.others"] == pytest.approx((10 - 5 - 3) / 1000)


def test_window_below_clock_resolution_has_no_shares() -> None:
    disk = {"sda": (0, 0, 0, 1, 0), "sda1": (0, 0, 0, 1, 0)}
    later = {"sda": (0, 4096, 0, 2, 0), "sda1": (0, 4096, 0, 2, 0)}
    first = sample(1, disks=disk, pressure={"io": (0, 0)})
    values = figures(first, sample(1.1, busy=20, disks=later, pressure={"io": (90, 0)}), device=SDA)
    assert values == {"device.read": 0, "device.written": 4096, "device.discarded": 0, "device.reads": 0}
    assert figures(first) == {}
    assert figures() == {}


def test_device_bytes_come_from_file_system_and_disk() -> None:
    first = sample(0, disks={"sda": (100, 100, 0, 1000, 0), "sda1": (0, 50, 0, 10, 0)})
    last = sample(10, disks={"sda": (900, 900, 0, 3500, 0), "sda1": (30, 250, 8, 400, 0)})
    values = figures(first, last, device=SDA)
    assert (values["device.read"], values["device.written"], values["device.discarded"]) == (30, 200, 8)
    assert values["device.utilisation"] == 0.25


def test_replugged_device_has_its_known_gain() -> None:
    other = {"sdb": (1, 1, 0, 1, 0)}
    rows = [{"sda1": (0, 5000, 0, 0, 0)}, {"sda1": (0, 6000, 0, 0, 0)}, {}, {"sda1": (0, 300, 0, 0, 0)}]
    samples = [sample(second, disks={**other, **row}) for second, row in enumerate(rows)]
    assert figures(*samples, device=SDA)["device.written"] == 1300
    gone = [sample(0, disks=other), sample(1, disks=other)]
    assert "device.written" not in figures(*gone, device=SDA)


def test_missing_accounting_gives_no_figures() -> None:
    disks = {"sda": (0, 0, 0, 5, 0), "sda1": (0, 0, 0, 5, 0)}
    silent = replace(SDA, counted=False)
    values = figures(
        sample(0, disks=disks, census=make_census()), sample(1, disks=disks, census=make_census()), device=silent
    )
    assert not [name for name in values if name.startswith(("device", "io"))]


def test_reset_counter_has_gained_its_value() -> None:
    assert [counter_delta(40, 100), counter_delta(5000, 20)] == [60, 20]


def foreign_io(written: int, lab_bytes: int | None, foreign_bytes: int | None, busy_ms: int = 5000) -> dict[str, float]:
    """The I/O figures of a window of 10 s."""
    first = sample(0, disks={"sda": (0, 1, 0, 0, 0), "sda1": (0, 1, 0, 0, 0)}, census=make_census())
    after = {"sda": (0, written + 1, 0, busy_ms, 0), "sda1": (0, written + 1, 0, busy_ms, 0)}
    values = figures(
        first, sample(10, disks=after, census=make_census(lab_bytes=lab_bytes, foreign_bytes=foreign_bytes)), device=SDA
    )
    return {name: value for name, value in values.items() if name.startswith("io.")}


def test_foreign_work_is_charged_by_its_byte_share() -> None:
    assert foreign_io(100 * MB, lab_bytes=60 * MB, foreign_bytes=40 * MB) == {
        "io.others": 0.2,
        "io.others_bytes": 40 * MB,
    }


def test_amplification_of_our_own_writes_is_not_others() -> None:
    assert foreign_io(300 * MB, lab_bytes=100 * MB, foreign_bytes=0)["io.others"] == 0.0


def test_bytes_on_another_disk_are_not_charged() -> None:
    assert foreign_io(100 * MB, lab_bytes=100 * MB, foreign_bytes=900 * MB)["io.others"] == 0.0


def test_log_line_on_an_idle_disk_is_harmless() -> None:
    assert foreign_io(4096, lab_bytes=0, foreign_bytes=4096, busy_ms=1) == {
        "io.others": 0.0001,
        "io.others_bytes": 4096,
    }


def test_partial_view_claims_no_foreign_io() -> None:
    assert foreign_io(100 * MB, lab_bytes=None, foreign_bytes=None) == {}


def test_inherited_counters_claim_no_foreign_io() -> None:
    before = make_census(family={(1000, 50): 0, (7, 1): 0}, heads=frozenset({(7, 1)}))
    disks = {"sda": (0, 1, 0, 0, 0), "sda1": (0, 1, 0, 0, 0)}
    last = sample(10, disks=disks, census=make_census(foreign_bytes=900))
    assert "io.others" not in figures(sample(0, disks=disks, census=before), last, device=SDA)


def test_memory_network_pressure_and_watched_processes_have_figures() -> None:
    def memory(available: int, dirty: int) -> dict[str, int]:
        return {"available": available, "dirty": dirty, "writeback": 1, "cached": 50, "buffers": 5, "shared": 15}

    def engine(memory: int, faults: int) -> dict[str, object]:
        return {LAB: process(1000), "engine": process(7, memory=memory, faults=faults)}

    bytes_of = {"eth0": (100, 10), "br0": (100, 10), "lo": (7, 7)}
    samples = [
        sample(0, memory=memory(90, 3), network=bytes_of, pressure={"io": (0, 0)}, processes=engine(4, 1)),
        sample(1, memory=memory(70, 9), network=bytes_of, pressure={"io": (1, 0)}, processes=engine(9, 1)),
        sample(
            2,
            memory=memory(80, 0),
            network={**bytes_of, "eth0": (1100, 40), "lo": (99, 99)},
            pressure={"io": (500_000, 9)},
            processes=engine(6, 4),
        ),
    ]
    expected = {
        "memory.available_min": 70,
        "memory.cache": 40,
        "memory.dirty_max": 10,
        "network.received": 1000,
        "network.sent": 30,
        "pressure.io": 0.25,
        "engine.memory_max": 9,
        "engine.faults_major": 3,
    }
    values = figures(*samples, interfaces=frozenset({"eth0"}))
    assert {name: values[name] for name in expected} == expected
    # Inside a container, without hardware, all interfaces but the loopback count.
    assert figures(*samples)["network.received"] == 1000
    assert {value.n for value in figures_of(window_of(samples))} == {3}
    assert "pressure.cpu" not in values


def test_a_throttled_control_group_shows() -> None:
    values = figures(sample(0, throttled_ns=5), sample(2, throttled_ns=5 + 10**9))
    assert values["cpu.throttled"] == 0.25
    assert "cpu.throttled" not in figures(sample(0), sample(2))
