"""A judgement as readers see it: the compared values, their contexts, and their names.

All parts of a report take names, order and colours from this module, so that a variant has the same name and colour
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from loadstone.format import units, wording
from loadstone.judge.finding import Finding, Verdict, concerns_metric
from loadstone.judge.judgement import Cell, Comparison, Judgement, VariantKey
from loadstone.report.warnings import Warnings, name_owners, warnings
from loadstone.results.result_set import LOADS, name_value, natural_key, variant_name
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.statistics.estimate import REPEATS_MIN

Item = TypeVar("Item")
# Names longer than this are shortened in charts and table heads; the comparison table has the full name.
NAME_LENGTH = 26
# The verdict on figures without a comparison or an interval.
NO_CLAIM = "no claim"


class View:
    """The names, order and cells of a judgement; results of passes over all trials are cached."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement = judgement
        self.results = judgement.results

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the answer."""
        return self.judgement.answer_verdict

    @cached_property
    def variants(self) -> dict[VariantKey, list[TrialResult]]:
        """The trials of each variant, in the order in which variants are shown."""
        trials_of, ranks = self.results.variants, {value: rank for rank, value in enumerate(self.values)}

        def place(key: VariantKey) -> tuple[object, int]:
            return natural_key(self.context(key)), ranks.get(self.value(key), len(ranks))

        return {key: trials_of[key] for key in sorted(trials_of, key=place)}

    @cached_property
    def dimension(self) -> str | None:
        """The compared dimension: from the question, else from the comparisons, else the only dimension that varies or
        exists; otherwise None."""
        dimensions = self.results.dimensions
        candidates = [self.results.question.by, *(comparison.by for comparison in self.judgement.comparisons[:1])]
        varied = [name for name, values in dimensions.items() if len(values) > 1]
        if len(varied) == 1:
            candidates.append(varied[0])
        elif not varied and len(dimensions) == 1:
            candidates.extend(dimensions)
        return next((name for name in candidates if name in dimensions), None)

    @cached_property
    def load(self) -> str | None:
        """The dimension of a sweep or search over load, which is the x axis of charts; None if there is no such
        dimension."""
        compared = [name for name in LOADS if name == self.dimension]
        candidates: list[str] = [*(search.rule.over for search in self.judgement.searches[:1]), *compared, *LOADS]
        numbers = {
            name: {value for value in values if isinstance(value, int | float) and not isinstance(value, bool)}
            for name, values in self.results.dimensions.items()
        }
        return next((name for name in candidates if len(numbers.get(name, ())) > 1), None)

    @cached_property
    def values(self) -> list[str]:
        """The compared values as text, the baseline first; without a compared dimension, the names of the variants."""
        if self.dimension is None:
            return sorted((variant_name(key) for key in self.results.variants), key=natural_key)
        names = sorted(self.results.dimensions[self.dimension], key=natural_key)
        baseline = self.results.question.baseline
        if baseline is None and self.judgement.comparisons:
            baseline = dict(self.judgement.comparisons[0].baseline.variant).get(self.dimension)
        return [str(value) for value in sorted(names, key=lambda value: str(value) != str(baseline))]

    @cached_property
    def short(self) -> dict[str, str]:
        """Each of `values` with a short and unique name for narrow places."""
        names: dict[str, str] = {}
        for number, value in enumerate(self.values, start=1):
            name = shorten(name_value(self.dimension, value) if self.dimension not in (None, *LOADS) else value)
            is_used = name in names.values()
            names[value] = f"{shorten(value, NAME_LENGTH - 6)} ({number})" if is_used else name
        return names

    @cached_property
    def contexts(self) -> list[VariantKey]:
        """The contexts in which something was measured, in natural order."""
        return sorted({self.context(key) for key in self.results.variants}, key=natural_key)

    @cached_property
    def is_description(self) -> bool:
        """Whether nothing is claimed: there are figures, but no comparison, search or curve."""
        judgement = self.judgement
        return not (judgement.comparisons or judgement.searches or judgement.curves)

    @property
    def standing(self) -> str:
        """The verdict in the report's first lines; `no claim` for valid figures without a comparison or an interval."""
        has_interval = any(len(trials) >= REPEATS_MIN for trials in self.results.variants.values())
        is_silent = self.verdict is Verdict.VALID and self.is_description and not has_interval
        return NO_CLAIM if is_silent else str(self.verdict)

    @cached_property
    def constants(self) -> dict[str, Scalar]:
        """The dimensions, other than the compared dimension, with only one value."""
        items = self.results.dimensions.items()
        return {name: values[0] for name, values in items if len(values) == 1 and name != self.dimension}

    @cached_property
    def keys_by_context(self) -> dict[VariantKey, list[VariantKey]]:
        """The variants of each context, in the order of `values`."""
        keys_of: dict[VariantKey, list[VariantKey]] = {}
        for key in self.variants:
            keys_of.setdefault(self.context(key), []).append(key)
        return keys_of

    @cached_property
    def comparisons(self) -> dict[tuple[str, VariantKey], Comparison]:
        """The comparisons by metric and contender."""
        return {(pair.metric, pair.contender.variant): pair for pair in self.judgement.comparisons}

    def context(self, key: VariantKey) -> VariantKey:
        """A variant without the compared dimension."""
        return tuple(pair for pair in key if pair[0] != self.dimension) if self.dimension else ()

    def value(self, key: VariantKey) -> str:
        """The entry of `values` for a variant."""
        return str(dict(key).get(self.dimension, "none")) if self.dimension else variant_name(key)

    def name(self, key: VariantKey) -> str:
        """The short name of a variant for narrow places."""
        return self.short.get(self.value(key), shorten(self.value(key)))

    def varying(self, key: VariantKey) -> str:
        """A variant's name from the dimensions that vary; from all dimensions if none varies."""
        return variant_name(tuple(pair for pair in key if pair not in self._common_pairs) or key)

    def title(self, context: VariantKey) -> str:
        """The title of a context, without constant dimensions: `workload a · clients 2`; a rate includes its unit."""
        return " · ".join(f"{name} {load_text(name, value)}" for name, value in context if name not in self.constants)

    @cached_property
    def _common_pairs(self) -> set[tuple[str, Scalar]]:
        """The dimensions with values that all variants share."""
        return set.intersection(*map(set, self.results.variants))

    @cached_property
    def owners(self) -> dict[Finding, str]:
        """The name of the variant or context that a finding concerns."""
        return name_owners(self.judgement)

    @cached_property
    def warnings(self) -> list[Warnings]:
        """The findings by check and severity, the most severe first."""
        return warnings(self.judgement)

    @cached_property
    def headline(self) -> tuple[str, ...]:
        """The compared metrics or, without comparisons, the headline metrics of the results."""
        return tuple(dict.fromkeys(pair.metric for pair in self.judgement.comparisons)) or self.results.headline_metrics

    def cell(self, key: VariantKey, metric: str) -> Cell | None:
        """One metric of one variant; None if it was not measured."""
        return self.judgement.cells.get((key, metric))

    def figure(self, cell: Cell) -> str:
        """A cell's median as text, with its bound; the same in every table and chart."""
        return wording.estimate_text(cell.estimate, cell.unit, self.judgement.output_bound(cell))

    def findings_of(self, key: VariantKey, metric: str = "") -> list[Finding]:
        """The findings on a variant, the most severe first; with a metric, only the findings that concern it."""
        findings = dict.fromkeys(self.judgement.variants.get(key, ()))
        for trial in self.variants.get(key, ()):
            findings.update(dict.fromkeys(self.judgement.trials.get(trial.trial, ())))
        if metric in self.results.metrics and (key_comparison := self.comparisons.get((metric, key))):
            findings.update(dict.fromkeys(key_comparison.findings))
        concerned = (item for item in findings if not metric or concerns_metric(item, metric))
        return sorted(concerned, key=lambda finding: -finding.severity)


def load_text(dimension: str, value: Scalar) -> str:
    """A value of a dimension as text; a rate has its unit."""
    is_rate = dimension == "rate" and isinstance(value, int | float) and not isinstance(value, bool)
    return units.format_rate(float(value)) if is_rate else str(value)


def shorten(name: str, length: int = NAME_LENGTH) -> str:
    """A name of at most this length: its beginning and its end, which identify it best."""
    name = " ".join(name.split()) or "(empty)"
    if len(name) <= length:
        return name
    tail = length // 3
    return f"{name[: length - tail - 1].rstrip()}…{name[-tail:].lstrip()}"


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most this many of the items, evenly spaced, including the first and the last."""
    if len(items) <= most or most < 2:
        return list(items[:most])
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]
