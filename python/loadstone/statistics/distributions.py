"""Tails and quantiles of the distributions that the statistical tests of this package use.

SciPy has all of them, but importing it takes longer than all other work of a command that prints a table:
`scipy.special` takes 0.2 s of CPU time, and `scipy.stats` 0.9 s. Each function is tested against `scipy.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from statistics import NormalDist


def normal_tail(z: float) -> float:
    """The probability that a standard normal variable exceeds `z`."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(tail: float) -> float:
    """The value that a standard normal variable exceeds with probability `tail` (Wichura 1988); infinite for 0."""
    return -NormalDist().inv_cdf(tail) if tail > 0 else math.inf


def student_tail(t: float, freedom: float) -> float:
    """The probability that Student's t exceeds `t`; `freedom` need not be whole."""
    square = t * t / freedom
    tail = incomplete_beta(freedom / 2, 0.5, 1 / (1 + square), square / (1 + square)) / 2
    return tail if t >= 0 else 1 - tail


@cache
def student_quantile(tail: float, freedom: float) -> float:
    """The value that Student's t exceeds with probability `tail`, which must be below a half.

    Computed by Newton's method, starting at the normal quantile, which is below the result. The tail is convex, so no
    step overshoots the result.
    """
    density = math.exp(-log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)
    t = normal_quantile(tail)
    for _ in range(200):
        step = (student_tail(t, freedom) - tail) / (density * (1 + t * t / freedom) ** (-(freedom + 1) / 2))
        t += step
        if abs(step) <= 1e-15 * t:
            break
    return t


def f_tail(f: float, freedom: tuple[int, int]) -> float:
    """The probability that Snedecor's F exceeds `f`, with the degrees of freedom of numerator and denominator."""
    above, below = freedom
    ratio = above * f / below
    return incomplete_beta(below / 2, above / 2, 1 / (1 + ratio), ratio / (1 + ratio))


def kolmogorov_tail(x: float) -> float:
    """The probability that the largest absolute value of a Brownian bridge exceeds `x` (Kolmogorov 1933)."""
    # Below this value, the tail differs from 1 by less than 1e-20, and the series would need more terms.
    if x < 0.16:
        return 1.0
    terms = ((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 30))
    return min(max(2 * math.fsum(terms), 0.0), 1.0)


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function at `x`; `rest` is 1 - x, but without the error of a subtraction."""
    if x * (a + b + 2) > a + 1:
        return 1 - incomplete_beta_fraction(b, a, rest, x)
    return incomplete_beta_fraction(a, b, x, rest)


def incomplete_beta_fraction(a: float, b: float, x: float, rest: float) -> float:
    """The continued fraction of DLMF 8.17.22, evaluated from its end; precise up to x = (a + 1) / (a + b + 2).

    The number of terms grows with the root of a and b (Press et al., Numerical Recipes, 3rd ed., section 6.4).
    """
    if x == 0:
        return 0.0
    fraction = 1.0
    for m in range(20 + int(4 * math.sqrt(max(a, b))), 0, -1):
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / (a + 1) / fraction
    return math.exp(a * math.log(x) + b * math.log(rest) - log_beta(a, b)) / (a * fraction)


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def binomial_tail(k: int, n: int) -> float:
    """The probability of at most `k` heads in `n` tosses of a fair coin."""
    return sum(math.comb(n, heads) for heads in range(k + 1)) / (1 << n)


def binomial_upper_tail(k: int, n: int, share: float) -> float:
    """The probability of at least `k` successes in `n` trials, each with probability `share`."""
    if k <= 0 or k > n:
        return float(k <= 0)
    return incomplete_beta(k, n - k + 1, share, 1 - share)


@cache
def rank_sum_counts(m: int, n: int) -> tuple[int, ...]:
    """For each U from 0 to m n, the number of orders of `m` and `n` values with U or less (Mann & Whitney 1947)."""
    return cumulate_coefficients([n + i for i in range(1, m + 1)], range(1, m + 1))


def inversion_tail(inversions: int, n: int) -> float:
    """The probability of at most this number of inversions in a random order of `n` values (Kendall 1938)."""
    # The simple cases avoid the large table of a long series.
    orders = (1, n)[inversions] if inversions <= 1 else inversion_counts(n)[inversions]
    return orders / math.factorial(n)


@cache
def inversion_counts(n: int) -> tuple[int, ...]:
    """For each count from 0 to n (n - 1) / 2, the number of orders of `n` values with at most that many inversions."""
    return cumulate_coefficients(range(1, n + 1), [1] * n)


def cumulate_coefficients(above: Sequence[int], below: Sequence[int]) -> tuple[int, ...]:
    """Cumulative coefficients of a polynomial in q: the product of 1 - q^i over `above`, divided by the same product
    over `below`.

    With 1 … n over 1 … 1, the coefficients count the inversions of permutations; with n + 1 … n + m over 1 … m (Gauss's
    binomial), they count the inversions between two samples (Stanley, Enumerative Combinatorics 1, 2nd ed.,
    section 1.7).
    """
    degree = sum(above) - sum(below)
    counts = [1] + [0] * degree
    for multiplier, divisor in zip(above, below, strict=True):
        for power in range(degree, multiplier - 1, -1):
            counts[power] -= counts[power - multiplier]
        for power in range(divisor, degree + 1):
            counts[power] += counts[power - divisor]
    return tuple(accumulate(counts))
