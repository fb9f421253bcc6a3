"""The faults of a variant, and the draw of their servers and instants for each repeat.

Every draw depends on the experiment's seed, the number of the fault and the repeat, but not on the variant: the
variants of a block share the draw. The instants of consecutive repeats form an additive sequence with an irrational
step, which covers its range evenly, however early it stops (Kuipers & Niederreiter, Uniform Distribution of Sequences,
1974).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.faults import CPU_SHARE, LIFT_SECONDS, NEVER, FaultKeys, seconds_of
from loadstone.experiment.model.values import parse_size

# Fractional parts of the golden ratio and of the square root of 2. The two are independent, so that lengths do not
# correlate with instants.
INSTANT_STEP, LIFT_STEP = 0.6180339887498949, 0.41421356237309515
# A slow server with a limited disk: the name under which `doctor` reports whether a host supports it.
SLOW_DISK = "slow disk"


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault of a variant, with the ranges of its draws in seconds since the start of the measured window."""

    kind: str
    # The fault's position in the experiment file, on which the draw depends.
    number: int
    servers: tuple[str, ...]
    count: int
    at_s: tuple[float, float]
    # None: the fault is lifted at the end of the window.
    lift_s: tuple[float, float] | None
    # `slow`: the share of a processor; 0 without a limit.
    cpu: float
    how: str
    # The conditions under which the service counts as recovered.
    share: float
    hold_s: float
    window_s: float
    # `cut` affects only the connection to this server (empty: to all) and only this direction.
    peer: str = ""
    direction: str = "both"
    # `slow`: bytes that each server may read, and bytes that it may write, per second; 0 without a limit.
    disk_bytes: int = 0

    @property
    def mechanisms(self) -> frozenset[str]:
        """The names under which `doctor` reports whether a host supports the fault."""
        return frozenset({self.kind, *([SLOW_DISK] if self.kind == "slow" and self.disk_bytes else [])})

    @property
    def is_partial_cut(self) -> bool:
        """Whether the fault cuts only a part of a server's connections."""
        return self.kind == "cut" and (bool(self.peer) or self.direction != "both")


@dataclass(frozen=True, slots=True)
class Draw:
    """The instants of a fault in one repeat, in ns since the start of the measured window."""

    at_ns: int
    # None: the fault is lifted at the end of the window.
    lift_ns: int | None


def hash_fraction(text: str) -> float:
    """A number from 0 (inclusive) to 1 (exclusive), computed from a uniform hash of the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / (1 << 48)


def draw_instants(fault: PlannedFault, seed: int, repeat: int) -> Draw:
    """The instants of a fault in a repeat."""
    label = f"{seed}/fault/{fault.number}"
    at_s = value_within(fault.at_s, hash_fraction(label) + repeat * INSTANT_STEP)
    if fault.kind == "restart":
        return Draw(round(at_s * 1e9), round(at_s * 1e9))
    if fault.lift_s is None:
        return Draw(round(at_s * 1e9), None)
    lift_s = value_within(fault.lift_s, hash_fraction(f"{label}/lift") + repeat * LIFT_STEP)
    return Draw(round(at_s * 1e9), round((at_s + lift_s) * 1e9))


def value_within(span: tuple[float, float], turns: float) -> float:
    """The value at a relative position in a span; the position is the fractional part of `turns`."""
    return span[0] + turns % 1.0 * (span[1] - span[0])


def draw_servers(fault: PlannedFault, seed: int, repeat: int, eligible: Sequence[str]) -> list[str]:
    """The servers of a fault in a repeat: each is drawn once in every `len(eligible)` repeats, in random order.

    With `count` servers at once, each server is drawn in `count` of these repeats.
    """
    names = sorted(eligible)
    if not names:
        return []
    round_number, position = divmod(repeat - 1, len(names))
    label = f"{seed}/fault/{fault.number}/round/{round_number}"
    first = sorted(range(len(names)), key=lambda rank: hash_fraction(f"{label}/{rank}"))[position]
    return [names[(first + i) % len(names)] for i in range(min(fault.count, len(names)))]


def plan_faults(experiment: Experiment, render: Callable[[str], str]) -> tuple[PlannedFault, ...]:
    """The faults of a variant. Validation has filled in the duration."""
    window_s = experiment.measure.duration or 0.0
    return tuple(plan_fault(fault, number, window_s, render) for number, fault in enumerate(experiment.faults))


def plan_fault(fault: FaultKeys, number: int, window_s: float, render: Callable[[str], str]) -> PlannedFault:
    """One fault with its templates rendered."""
    first = getattr(fault.at, "from")
    at_s = (seconds_of(first, window_s), seconds_of(fault.at.to or first, window_s))
    lift_s: tuple[float, float] | None = (LIFT_SECONDS, LIFT_SECONDS)
    if fault.lift is not None:
        shortest = getattr(fault.lift, "from")
        lift_s = None if shortest == NEVER else (shortest, fault.lift.to or shortest)
    return PlannedFault(
        kind=render(fault.do),
        number=number,
        servers=tuple(map(render, fault.server)),
        count=int(render(str(fault.count))),
        at_s=at_s,
        lift_s=lift_s,
        cpu=(0.0 if fault.disk else CPU_SHARE) if fault.cpu is None else fault.cpu,
        how=fault.how,
        share=fault.recovered.share,
        hold_s=fault.recovered.hold,
        window_s=fault.recovered.window,
        peer=render(fault.peer or ""),
        direction=fault.direction,
        disk_bytes=parse_size(render(str(fault.disk))) if fault.disk else 0,
    )
