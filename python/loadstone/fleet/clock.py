"""Compares the hosts' clocks with the lab's clock by timing round trips.

The lab asks a host for its time. The host's offset is then known to within half the round trip, however asymmetric the
network is (RFC 5905, section 8). The shortest of several round trips gives the tightest bound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

# The maximum rate at which the kernel slews a clock (adjtimex(2)). A faster change is a jump.
SLEW_MAX = 500e-6
# Readings must be at least this far apart to yield a drift.
DRIFT_SECONDS_MIN = 5.0
# Until half of this time has passed since the first reading, a reading with a tighter bound replaces the first reading.
SPAN_NS = 10_000_000_000
# A smaller deviation is not a jump, because scheduling can delay the reading of the clock.
JUMP_NS_MIN = 1_000_000


class HostClock:
    """The clock of this host. Tests replace it with a clock that has an offset, a drift or jumps."""

    def unix_ns(self) -> int:
        """The time since the Unix epoch, ns."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds since an arbitrary instant."""
        return time.monotonic()

    def to_kernel_ns(self, unix_ns: int) -> int:
        """Converts an instant of this clock to the kernel's clock, which engines read."""
        return unix_ns

    def from_kernel_ns(self, unix_ns: int) -> int:
        """Converts an instant of the kernel's clock to this clock."""
        return unix_ns


@dataclass(frozen=True)
class ShiftedClock(HostClock):
    """A clock with a growing offset, for tests and demonstrations."""

    offset_ns: int = 0
    # The growth of the offset per unit of time since `since_ns`.
    drift: float = 0.0
    since_ns: int = 0

    def unix_ns(self) -> int:
        """The shifted kernel time."""
        return self.from_kernel_ns(time.time_ns())

    def to_kernel_ns(self, unix_ns: int) -> int:
        """The inverse of `from_kernel_ns`."""
        return self.since_ns + round((unix_ns - self.offset_ns - self.since_ns) / (1 + self.drift))

    def from_kernel_ns(self, unix_ns: int) -> int:
        """A shifted kernel instant."""
        return unix_ns + self.offset_ns + round((unix_ns - self.since_ns) * self.drift)


@dataclass(frozen=True)
class Reading:
    """The instants of one round trip, in Unix ns: `sent` and `returned` by the lab's clock, `received` and `replied` by
    the host's clock."""

    sent_ns: int
    received_ns: int
    replied_ns: int
    returned_ns: int

    @property
    def offset_ns(self) -> float:
        """The host's clock minus the lab's."""
        return ((self.received_ns - self.sent_ns) + (self.replied_ns - self.returned_ns)) / 2

    @property
    def bound_ns(self) -> float:
        """The maximum error of the offset; negative if a clock was set during the round trip."""
        return ((self.returned_ns - self.sent_ns) - (self.replied_ns - self.received_ns)) / 2

    @property
    def middle_ns(self) -> float:
        """The middle of the round trip by the lab's clock."""
        return (self.sent_ns + self.returned_ns) / 2


@dataclass(frozen=True)
class OffsetEstimate:
    """A host's offset at an instant, and the maximum error of the offset, ns."""

    offset_ns: float
    bound_ns: float


@dataclass
class ClockWatch:
    """The offset and drift of one host's clock."""

    first: Reading | None = None
    latest: Reading | None = None
    # Every detected jump, ns.
    jumps: list[float] = field(default_factory=list)

    def add(self, reading: Reading) -> float | None:
        """Adds a reading; returns the size of the jump that it reveals, ns, or None."""
        if self.latest is not None:
            if reading.bound_ns < -JUMP_NS_MIN:
                # The clock was set forward during the round trip. Only the reply's return path shows the new offset.
                jump_ns, way_ns = -2 * reading.bound_ns, round(2 * self.latest.bound_ns)
                replied_ns, returned_ns = reading.replied_ns, reading.returned_ns
                return self._restart(jump_ns, Reading(returned_ns - way_ns, replied_ns, replied_ns, returned_ns))
            expected = self.estimate(reading.middle_ns)
            departure_ns = reading.offset_ns - expected.offset_ns
            if abs(departure_ns) > max(reading.bound_ns, 0) + expected.bound_ns + JUMP_NS_MIN:
                return self._restart(departure_ns, reading)
        if self.first is None or self.latest is None:
            self.first = self.latest = reading
            return None
        is_early = reading.middle_ns - self.first.middle_ns < SPAN_NS / 2
        age_ns = reading.middle_ns - self.latest.middle_ns
        # An old reading becomes less accurate, because the clock may have drifted since.
        aged_ns = self.latest.bound_ns + SLEW_MAX * age_ns
        # The first round trip may take seconds, because the agent is starting. A later reading then bounds the offset
        # at that instant more tightly.
        is_better = reading.bound_ns + SLEW_MAX * (reading.middle_ns - self.first.middle_ns) < self.first.bound_ns
        if (is_early and reading.bound_ns < self.first.bound_ns) or is_better:
            self.first = self.latest = reading
        elif reading.bound_ns < aged_ns and (not is_early or reading.bound_ns <= self.latest.bound_ns):
            self.latest = reading
        return None

    def _restart(self, jump_ns: float, reading: Reading) -> float:
        self.jumps.append(jump_ns)
        self.first = self.latest = reading
        return jump_ns

    @property
    def drift(self) -> OffsetEstimate | None:
        """The growth of the offset per unit of time, and its maximum error; None if the readings are too close together
        or the error exceeds the maximum slew rate."""
        if self.first is None or self.latest is None:
            return None
        elapsed = self.latest.middle_ns - self.first.middle_ns
        if elapsed < DRIFT_SECONDS_MIN * 1e9:
            return None
        growth = (self.latest.offset_ns - self.first.offset_ns) / elapsed
        bound = (self.latest.bound_ns + self.first.bound_ns) / elapsed
        return OffsetEstimate(growth, bound) if bound <= SLEW_MAX else None

    def estimate(self, at_ns: float) -> OffsetEstimate:
        """The offset at an instant of the lab's clock, corrected for drift. Requires at least one reading."""
        assert self.latest is not None, "readings precede estimates"
        since = abs(at_ns - self.latest.middle_ns)
        drift = self.drift
        if drift is None:
            return OffsetEstimate(self.latest.offset_ns, self.latest.bound_ns + SLEW_MAX * since)
        ahead = at_ns - self.latest.middle_ns
        return OffsetEstimate(
            self.latest.offset_ns + drift.offset_ns * ahead,
            self.latest.bound_ns + drift.bound_ns * since,
        )
