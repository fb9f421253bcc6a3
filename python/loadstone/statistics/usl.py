"""Scaling: the Universal Scalability Law, fitted to throughput against clients.

X(N) = lam N / (1 + sigma (N - 1) + kappa N (N - 1)): lam is the throughput of one client, sigma the serial share,
kappa the cost of coherence (Gunther, Guerrilla Capacity Planning, 2007, chapter 4). Many systems do not follow the law,
so it is reported only if the differences between repeats explain its residuals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.statistics.distributions import f_tail
from loadstone.statistics.intervals import ROUNDING, Floats

PARAMETERS = 3
# Three parameters fit any three points exactly.
COUNTS_MIN = PARAMETERS + 1
# If p is below this value, the law does not fit.
P_MIN = 0.05


@dataclass(frozen=True, slots=True)
class Law:
    """The parameters of a fitted curve; lam is in op/s."""

    lam: float
    sigma: float
    kappa: float

    def predict_throughput(self, clients: float) -> float:
        """The fitted throughput with this number of clients, op/s."""
        return float(law_curve(np.array([clients]), self.lam, self.sigma, self.kappa)[0])


def fit_law(points: Sequence[tuple[float, float]]) -> Law | None:
    """Fits (clients, throughput) points; each repeat of a number of clients is a point.

    None if there are too few different numbers of clients, if the law does not fit, or if the fit cannot be tested
    because there are no repeats. The fit minimises the squares of relative errors, as noise grows with throughput.
    """
    usable = [(n, x) for n, x in points if n > 0 and x > 0 and math.isfinite(n + x)]
    clients, throughput = np.array([n for n, _ in usable]), np.array([x for _, x in usable])
    if len(set(clients.tolist())) < COUNTS_MIN:
        return None
    parameters = fit_parameters(clients, throughput)
    chance = lack_of_fit(clients, throughput / law_curve(clients, *parameters))
    return Law(*parameters) if chance is not None and chance >= P_MIN else None


def lack_of_fit(clients: Floats, shares: Floats) -> float | None:
    """The p of the F test for lack of fit (Draper & Smith, Applied Regression Analysis, 1998, section 2.1).

    `shares` are the figures as shares of the fitted figures. The residuals between numbers of clients are compared with
    the differences between repeats of the same number. None without repeats.
    """
    groups = [shares[clients == count] for count in np.unique(clients)]
    freedom = len(groups) - PARAMETERS, len(shares) - len(groups)
    if min(freedom) < 1:
        return None
    pure = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    lack = sum(len(group) * float(group.mean() - 1) ** 2 for group in groups)
    if pure <= ROUNDING:
        return 1.0 if lack <= ROUNDING else 0.0
    return f_tail(lack / freedom[0] / (pure / freedom[1]), freedom)


def law_curve(clients: Floats, lam: float, sigma: float, kappa: float) -> Floats:
    """The throughput that the law predicts."""
    return lam * clients / (1 + sigma * (clients - 1) + kappa * clients * (clients - 1))


def fit_parameters(clients: Floats, throughput: Floats) -> tuple[float, float, float]:
    """Fits lam, sigma (0 to 1) and kappa (at least 0) by least squares of relative errors."""
    from scipy import optimize

    # N / X(N) is linear in 1/lam, sigma/lam and kappa/lam, which gives a starting point.
    rise = clients / throughput
    terms = np.stack([np.ones_like(clients), clients - 1, clients * (clients - 1)], axis=1) / rise[:, None]
    (base, queue, agree), _ = optimize.nnls(terms, np.ones_like(rise))
    base = max(float(base), float(rise.min()) * 1e-3)
    start = 1 / base, min(float(queue) / base, 1.0), float(agree) / base
    scale = float(throughput.max())
    # The parameters are scaled, since lam is about 10^5 and kappa about 10^-5, and the fit varies all three.
    parameters, _ = optimize.curve_fit(
        lambda n, lam, sigma, kappa: law_curve(n, lam * scale, sigma, kappa * 1e-3),
        clients,
        throughput,
        p0=(start[0] / scale, start[1], start[2] * 1e3),
        sigma=throughput,
        bounds=([0, 0, 0], [np.inf, 1, np.inf]),
    )
    return float(parameters[0]) * scale, float(parameters[1]), float(parameters[2]) * 1e-3
