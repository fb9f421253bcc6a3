"""Code that `show` and `compare` share: regroups, judges and prints results."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.format.suggestion import suggest_names
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report.terminal import standard_output, tables
from loadstone.results.projection import Projected, Projection, project_results
from loadstone.results.result_set import ResultSet
from loadstone.search.probe import Probe


def split_keys(text: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated list."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def add_expectations(results: ResultSet, conditions: Sequence[str]) -> ResultSet:
    """A copy of the results with further expectations."""
    expected = (*results.question.expect, *conditions)
    return replace(results, question=replace(results.question, expect=tuple(dict.fromkeys(expected))))


def show_results(results: ResultSet, options: argparse.Namespace) -> Judgement:
    """Judges and prints results according to the options."""
    grouping = {name: split_keys(getattr(options, name)) for name in ("table", "row", "col")}
    projection = Projection(**grouping, filter=options.filter, metrics=split_keys(options.metric) or ())
    projected = regroup_results(results, options.set, projection)
    judgement = judge_results(projected.results, rank_invalid=options.rank_invalid)
    if options.json:
        print(json.dumps(replace_infinite(judgement_document(judgement)), ensure_ascii=False, allow_nan=False))
    else:
        tables.show(standard_output(), judgement, projected)
    return judgement


def regroup_results(results: ResultSet, settings: Sequence[str], projection: Projection) -> Projected:
    """Applies `settings` (such as `compare.by=system`) to the experiment's question, and a projection to its results.

    Raises LoadstoneError.
    """
    if settings:
        # Imported late, because importing the experiment model takes as long as the work of this function.
        from loadstone.experiment.file import change_question

        question = change_question(results.question, settings)
        if question.by is not None and question.by not in results.dimensions:
            hint = suggest_names(question.by, list(results.dimensions), "the dimensions are")
            raise LoadstoneError(f'there is no dimension "{question.by}" in {results.name}', hint)
        results = replace(results, question=question, recorded=results.question)
    stated = any(
        setting.partition("=")[0].strip() in ("compare.guarantees", "compare.promises") for setting in settings
    )
    return project_results(results, replace(projection, promises=results.question.promises if stated else None))


def replace_infinite(part: Any) -> Any:
    """Replaces NaN and infinity with null, because JSON cannot represent them; a ratio to 0 is infinite."""
    if isinstance(part, dict):
        return {name: replace_infinite(value) for name, value in part.items()}
    if isinstance(part, list):
        return [replace_infinite(value) for value in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def judgement_document(judgement: Judgement) -> dict[str, Any]:
    """A judgement as data, in base units."""
    return {
        "answer": judgement.sentence,
        "expectations": [
            {
                **read_attributes(item, "text", "of", "answer", "unit", "bound", "why", "remedy"),
                **read_attributes(item.estimate, "value", "low", "high", "level", "n"),
            }
            for item in judgement.expectations
        ],
        "verdict": str(judgement.verdict),
        "answer_verdict": str(judgement.answer_verdict),
        "not_looked": {skipped.check: skipped.reason for skipped in judgement.not_looked},
        "cells": [
            {
                "variant": dict(cell.variant),
                **read_attributes(cell, "metric", "unit"),
                **read_attributes(judgement.output_estimate(cell), "value", "low", "high", "level", "n"),
                "withheld": cell.withheld,
                "bound": judgement.output_bound(cell),
            }
            for cell in judgement.cells.values()
            if cell.metric in judgement.results.headline_metrics
        ],
        "comparisons": [
            {
                "metric": comparison.metric,
                "context": dict(comparison.context),
                "by": comparison.by,
                "baseline": dict(comparison.baseline.variant).get(comparison.by),
                "contender": dict(comparison.contender.variant).get(comparison.by),
                "ratio": comparison.ratio.value,
                **read_attributes(comparison.ratio, "low", "high"),
                **read_attributes(comparison, "p", "p_adjusted"),
                **{"n": comparison.ratio.n, "n_unit": comparison.n_unit},
                **read_attributes(comparison, "effect", "test", "claim", "why", "bound", "exploratory"),
                "verdict": str(comparison.verdict),
                "scenarios": [
                    {
                        "name": row.name,
                        "ratio": row.ratio.value,
                        **read_attributes(row.ratio, "low", "high"),
                        **read_attributes(row, "n", "reading", "decides"),
                    }
                    for row in comparison.scenarios
                ],
            }
            for comparison in judgement.comparisons
        ],
        "curves": [
            {
                "variant": dict(curve.context),
                **read_attributes(
                    curve.knee, "loads", "medians", "fit", "plateau", "reached", "lower", "upper", "collapse"
                ),
                **read_attributes(curve.knee, "unclaimed", "departing"),
            }
            for curve in judgement.curves
        ],
        "searches": [
            {
                "variant": dict(search.context),
                "over": search.rule.over,
                "such_that": search.rule.objective and search.rule.objective.text,
                **read_attributes(search.outcome, "kind", "load", "low", "high", "stopped"),
                "notes": list(search.outcome.notes) if search.outcome else [],
                "probes": [
                    {"load": load, "throughput": Probe(load, samples).throughput, "trials": len(samples)}
                    for load, samples in sorted(search.samples.items())
                ],
            }
            for search in judgement.searches
        ],
        "findings": [
            {
                "check": finding.check,
                "severity": finding.severity.name.lower(),
                **read_attributes(finding, "message", "hint"),
                "trials": list(finding.trials),
                "metric": finding.metric,
            }
            for finding in judgement.all_findings
        ],
    }


def read_attributes(of: object, *names: str) -> dict[str, Any]:
    """The named attributes of an object, each None if the object is None."""
    return {name: None if of is None else getattr(of, name) for name in names}
