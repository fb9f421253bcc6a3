"""Scaling: the Universal Scalability Law, fitted to throughput against clients, with its peak.

X(N) = lam N / (1 + sigma (N - 1) + kappa N (N - 1)): lam is the throughput of one client, sigma what they queue for,
kappa what they have to agree on (Gunther, Guerrilla Capacity Planning, 2007, chapter 4). Only kappa bends the curve
down; its peak is at the root of (1 - sigma) / kappa.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize

from loadstone.statistics.centre import Floats
from loadstone.statistics.estimate import Estimate

# Three parameters go through any three points.
COUNTS_MIN = 4
RESAMPLES = 500
SEED = 2007
LEVEL = 0.95
# A peak so far beyond the most clients measured is an extrapolation and not named.
BEYOND = 1.25

# `clear`: the peak and its interval lie within what was measured; `edge`: they end within BEYOND times the most clients
# measured; `vague`: the interval reaches further, or has no end; `beyond`: the curve has no peak within or near what
# was measured, and no peak is named; `too-few-points`: no fit.
Confidence = Literal["clear", "edge", "vague", "beyond", "too-few-points"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """A fitted curve; its parameters are nan where there are too few points."""

    lam: float
    sigma: float
    kappa: float
    # Clients at the peak; without interval where its upper end is not finite.
    peak: Estimate | None
    confidence: Confidence

    def throughput(self, clients: float) -> float:
        """The fitted throughput of so many clients."""
        return float(curve(np.array([clients]), self.lam, self.sigma, self.kappa)[0])


def fit(points: Sequence[tuple[float, float]], resamples: int = RESAMPLES, seed: int = SEED) -> Scaling:
    """Fits (clients, throughput) points, repeats of one number of clients being points of their own.

    Least squares of relative errors, as noise grows with throughput. The peak's interval is that of a bootstrap of
    residuals, widened for the fitted parameters (Davison & Hinkley, Bootstrap Methods and their Application, 1997,
    section 6.3): most sweeps have too few repeats to resample within one number of clients.
    """
    usable = [(n, x) for n, x in points if n > 0 and x > 0 and math.isfinite(n + x)]
    clients, throughput = np.array([n for n, _ in usable]), np.array([x for _, x in usable])
    if len(set(clients.tolist())) < COUNTS_MIN:
        return Scaling(math.nan, math.nan, math.nan, None, "too-few-points")
    best = parameters(clients, throughput)
    peak = peak_clients(best)
    most = float(clients.max())
    if peak > BEYOND * most:
        return Scaling(*best, None, "beyond")
    fitted = curve(clients, *best)
    residuals = throughput / fitted - 1
    # Three parameters have taken their share of the variance.
    residuals = (residuals - residuals.mean()) * math.sqrt(len(residuals) / max(len(residuals) - 3, 1))
    draws = np.random.default_rng(seed).choice(residuals, (resamples, len(residuals)))
    peaks = np.array([peak_clients(parameters(clients, each, best)) for each in fitted * np.maximum(1 + draws, 0.01)])
    # Not interpolated: between a number and infinity there is nothing.
    low, high = np.quantile(peaks, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
    n = len(usable)
    method = "Universal Scalability Law, bootstrap of residuals"
    if not math.isfinite(high):
        return Scaling(*best, Estimate(peak, n, method=method), "vague")
    confidence: Confidence = "clear" if high <= most else "edge" if high <= BEYOND * most else "vague"
    return Scaling(*best, Estimate(peak, n, float(low), float(high), LEVEL, method), confidence)


def curve(clients: Floats, lam: float, sigma: float, kappa: float) -> Floats:
    """The law's throughput."""
    return lam * clients / (1 + sigma * (clients - 1) + kappa * clients * (clients - 1))


def parameters(
    clients: Floats, throughput: Floats, start: tuple[float, float, float] | None = None
) -> tuple[float, float, float]:
    """lam, sigma and kappa of least squares of relative errors; sigma from 0 to 1, kappa from 0."""
    if start is None:
        # N / X(N) is linear in 1/lam, sigma/lam and kappa/lam: a start without guessing.
        rise = clients / throughput
        terms = np.stack([np.ones_like(clients), clients - 1, clients * (clients - 1)], axis=1) / rise[:, None]
        (base, queue, agree), _ = optimize.nnls(terms, np.ones_like(rise))
        base = max(float(base), float(rise.min()) * 1e-3)
        start = 1 / base, min(float(queue) / base, 1.0), float(agree) / base
    scale = float(throughput.max())
    # Scaled, since lam is some 10^5 and kappa some 10^-5, and all three have to move.
    found, _ = optimize.curve_fit(
        lambda n, lam, sigma, kappa: curve(n, lam * scale, sigma, kappa * 1e-3),
        clients,
        throughput,
        p0=(start[0] / scale, start[1], start[2] * 1e3),
        sigma=throughput,
        bounds=([0, 0, 0], [np.inf, 1, np.inf]),
    )
    return float(found[0]) * scale, float(found[1]), float(found[2]) * 1e-3


def peak_clients(law: tuple[float, float, float]) -> float:
    """Clients at the peak, at least 1; infinite where the curve only flattens."""
    _, sigma, kappa = law
    # The solver stops short of its bound by about this much.
    return max(math.sqrt((1 - sigma) / kappa), 1.0) if kappa > 1e-12 else math.inf
