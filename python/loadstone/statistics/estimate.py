"""An estimate: a figure with its interval, if it has one."""

from __future__ import annotations

from dataclasses import dataclass

# With fewer repeats than this, no claim is allowed: the smallest two-sided p of a signed-rank test is 2/2^n, 0.0625
# at n = 5.
REPEATS_MIN = 6


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure from `n` repeats; `low` and `high` are None without an interval, as with too few repeats.

    `level` is the actual level of the interval, as order statistics only allow certain levels; `method` is the
    statistical method.
    """

    value: float
    n: int
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str = ""

    @property
    def relative_width(self) -> float | None:
        """The interval's full width as a share of the figure: 0.05 is ±2.5 %. None without an interval."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / abs(self.value)
