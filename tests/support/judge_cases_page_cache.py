"""Crafted results on both sides of the thresholds for checks of reads from the page cache."""

from __future__ import annotations

from judge_support import Case, asking, both, experiment, facts, set_figures
from loadstone.judge.finding import Severity

NOTE, INVALID = Severity.NOTE, Severity.INVALID
CASES = [
    Case("page-cache", "a tenth from the device", experiment(set_figures(device__read=1e9))),
    Case(
        "page-cache",
        "less",
        experiment(set_figures(device__read=1e8)),
        NOTE,
        "reads returned 10.0 GB, and the device read 100 MB: at least 99 % of the bytes came from memory",
    ),
    Case(
        "page-cache",
        "half, with a claim about the device",
        experiment(set_figures(device__read=5e9), question=asking(claims="device")),
    ),
    Case(
        "page-cache",
        "less, with a claim about the device",
        experiment(set_figures(device__read=4e9), question=asking(claims="device")),
        INVALID,
        "reads returned 10.0 GB, and the device read 4.00 GB: at least 60 % of the bytes came from memory",
    ),
    Case(
        "page-cache",
        "on tmpfs",
        experiment(facts(file_system="tmpfs")),
        NOTE,
        "the data is on tmpfs, which has no device",
    ),
    Case(
        "page-cache",
        "on tmpfs, with a claim about the device",
        experiment(facts(file_system="tmpfs", claims="device")),
        INVALID,
        "the data is on tmpfs, which has no device",
    ),
    Case(
        "page-cache",
        "claimed, but not measured",
        experiment(set_figures(without=("device.read",)), question=asking(claims="device")),
        INVALID,
        "`claims: device` is set, but the device's bytes were not measured",
    ),
    Case("page-cache", "a store in memory", experiment(both(set_figures(device__read=0), facts(data_in="memory")))),
    Case(
        "page-cache",
        "a store in memory, with a claim about the device",
        experiment(both(set_figures(device__read=0), facts(data_in="memory")), question=asking(claims="device")),
        INVALID,
        "`claims: device` is set, but the store keeps its data in memory",
    ),
    Case(
        "page-cache",
        "bytes from the device, most of them of a warm-up",
        experiment(set_figures(device__read=1e9, device__read_per_operation=1e3)),
        NOTE,
        "reads returned 10.0 GB, and the device read 100 MB: at least 99 % of the bytes came from memory",
    ),
]
