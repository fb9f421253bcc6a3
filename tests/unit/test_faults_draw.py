"""Seed and repeat determine the servers and instants of faults, evenly spread even if the repeats stop early."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from loadstone.experiment.plan.faults import PlannedFault, draw_instants, draw_servers

FAULT = PlannedFault("kill", 0, ("any",), 1, (20.0, 80.0), (5.0, 15.0), 0.1, "silence", 0.95, 30.0, 5.0)
NODES = ("node-1", "node-2", "node-3")


def places(fault: PlannedFault, seed: int, repeats: int) -> list[float]:
    """The instants as shares of their range."""
    first, last = fault.at_s
    return [
        (draw_instants(fault, seed, repeat).at_ns / 1e9 - first) / (last - first) for repeat in range(1, repeats + 1)
    ]


def test_instants_of_schedules_cover_their_range() -> None:
    chooser = random.Random(7)
    for _ in range(1000):
        seed, repeats = chooser.randrange(1 << 32), chooser.randint(3, 60)
        first = chooser.uniform(0, 100)
        fault = replace(FAULT, at_s=(first, first + chooser.uniform(1, 300)))
        points = [0.0, *sorted(places(fault, seed, repeats)), 1.0]
        assert all(0 <= place <= 1 for place in points)
        # By the three-gap theorem, the largest gap of the golden rotation is below 1.9 mean gaps; an end of the range
        # may split it.
        assert max(after - before for before, after in pairwise(points)) < 1.9 / repeats + 1e-9


@pytest.mark.parametrize("repeats", [3, 4, 6, 7, 20])
def test_servers_are_drawn_equally_often(repeats: int) -> None:
    for seed in range(200):
        counted = Counter(name for r in range(repeats) for name in draw_servers(FAULT, seed, r + 1, NODES))
        counts = [counted[name] for name in NODES]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == repeats


def test_order_of_servers_differs_between_rounds() -> None:
    orders = {tuple(draw_servers(FAULT, 1, 3 * r + i, NODES)[0] for i in (1, 2, 3)) for r in range(30)}
    assert len(orders) == 6


def test_several_servers_at_once_are_distinct() -> None:
    for repeat in range(1, 30):
        assert len(set(draw_servers(replace(FAULT, count=2), 1, repeat, NODES))) == 2
        assert set(draw_servers(replace(FAULT, count=5), 1, repeat, NODES)) == {*NODES}


def test_draw_ignores_kind_and_order_of_servers() -> None:
    for repeat in range(1, 50):
        twin = replace(FAULT, kind="none")
        assert draw_instants(twin, 3, repeat) == draw_instants(FAULT, 3, repeat)
        assert draw_servers(twin, 3, repeat, NODES[::-1]) == draw_servers(FAULT, 3, repeat, NODES)


def test_seed_and_number_change_the_draw() -> None:
    draws = {draw_instants(replace(FAULT, number=number), seed, 1) for seed in range(20) for number in range(5)}
    assert len(draws) == 100


def test_length_is_not_a_function_of_the_instant() -> None:
    draws = [draw_instants(FAULT, 1, repeat) for repeat in range(1, 200)]
    lengths = [(draw.lift_ns or 0) - draw.at_ns for draw in sorted(draws, key=lambda draw: draw.at_ns)]
    assert all(5e9 <= length <= 15e9 for length in lengths)
    rises = sum(after > before for before, after in pairwise(lengths))
    assert 60 < rises < 140
    assert draw_instants(replace(FAULT, lift_s=None), 1, 1).lift_ns is None
