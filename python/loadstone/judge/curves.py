"""Curves: throughput against the number of clients, with the knee, and the scalability law if it fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.judge import figures
from loadstone.judge.judgement import Curve, VariantKey
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.knee import find_knee
from loadstone.statistics.usl import COUNTS_MIN, fit_law

CLIENTS = "clients"
# The maximum number of curves: a knee and a fit take a few milliseconds each.
CURVES_MAX = 40


def fit_curves(variants: Mapping[VariantKey, Sequence[TrialResult]], *, interleaved: bool) -> Iterator[Curve]:
    """A curve for each context with enough different numbers of clients, up to CURVES_MAX.

    The caller excludes trials that do not count. If `interleaved`, trials with the same repeat number form a block.
    """
    points_of: dict[VariantKey, dict[float, list[tuple[int, float]]]] = {}
    for key, trials in variants.items():
        context = tuple(pair for pair in key if pair[0] != CLIENTS)
        for trial in trials:
            clients, throughput = figures.client_count(trial), trial.value(THROUGHPUT)
            # At a rate, throughput is the requested rate.
            if clients is not None and throughput and trial.loop != "open":
                points_of.setdefault(context, {}).setdefault(clients, []).append((trial.repeat, throughput))
    enough = {context: points for context, points in points_of.items() if len(points) >= COUNTS_MIN}
    for context, points in list(enough.items())[:CURVES_MAX]:
        yield fit_curve(context, points, interleaved=interleaved)


def fit_curve(context: VariantKey, points: Mapping[float, Sequence[tuple[int, float]]], *, interleaved: bool) -> Curve:
    """One curve; `points` has (block, throughput) by number of clients."""
    # Results of several experiments can contain the same repeat number twice.
    blocks = interleaved and all(len(dict(every)) == len(every) for every in points.values())
    cells = {
        clients: dict(every if blocks else enumerate(figure for _, figure in every))
        for clients, every in points.items()
    }
    law = fit_law([(clients, figure) for clients, every in points.items() for _, figure in every])
    return Curve(context, find_knee(cells, blocks=blocks), law)
