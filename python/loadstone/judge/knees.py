"""Knees: where the throughput of a variant stops growing with its clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from loadstone.judge import figures
from loadstone.judge.judgement import Knee, VariantKey
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.usl import COUNTS_MIN, RESAMPLES, Confidence, fit

CLIENTS = "clients"
# A fit takes a millisecond, and a bootstrap hundreds of them: many curves share what there is, and no more are drawn.
FITS_MAX = 5000
CURVES_MAX = 40
CONFIDENCE: dict[Confidence, str] = {
    "clear": "clear: peak and interval lie within what was measured",
    "edge": "at the edge: its interval ends a little beyond what was measured",
    "vague": "vague: its interval reaches far beyond what was measured",
    "beyond": "the curve has no peak within what was measured",
    "too-few-points": "too few points",
}


def knees(variants: Mapping[VariantKey, Sequence[TrialResult]]) -> Iterator[Knee]:
    """One for each curve with enough different numbers of clients; the caller leaves out trials that do not count."""
    curves: dict[VariantKey, dict[float, list[float]]] = {}
    for key, trials in variants.items():
        context = tuple(pair for pair in key if pair[0] != CLIENTS)
        for trial in trials:
            clients, throughput = figures.clients(trial), trial.value(THROUGHPUT)
            # With a rate set, throughput is what was asked for.
            if clients is not None and throughput and trial.loop != "open":
                curves.setdefault(context, {}).setdefault(clients, []).append(throughput)
    found = {context: points for context, points in curves.items() if len(points) >= COUNTS_MIN}
    resamples = min(RESAMPLES, FITS_MAX // min(max(len(found), 1), CURVES_MAX))
    for context, points in list(found.items())[:CURVES_MAX]:
        yield knee(context, points, resamples)


def knee(context: VariantKey, points: Mapping[float, Sequence[float]], resamples: int) -> Knee:
    """The law fitted to every repeat; the points shown are medians."""
    law = fit([(clients, each) for clients, every in points.items() for each in every], resamples)
    counts = tuple(sorted(points))
    return Knee(
        context,
        counts,
        tuple(median(points[clients]) for clients in counts),
        law.lam,
        law.sigma,
        law.kappa,
        law.peak,
        CONFIDENCE[law.confidence],
    )
