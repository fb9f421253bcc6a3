"""Pairing: which variants are compared with each other, and the findings on sides that are not comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from loadstone.judge.checks.impossible import LevelsOfTrials, find_shared_runs
from loadstone.judge.finding import Finding, NotLooked, Pair
from loadstone.judge.findings import PAIR
from loadstone.judge.judgement import VariantKey
from loadstone.judge.order import examine_order
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet, natural_key
from loadstone.results.trial_result import Scalar, TrialResult

Variants = Mapping[VariantKey, Sequence[TrialResult]]


@dataclass(frozen=True)
class Match:
    """A baseline and a contender in one context, with the findings on the pair."""

    context: VariantKey
    baseline: VariantKey
    contender: VariantKey
    pair: Pair
    findings: tuple[Finding, ...] = ()
    not_looked: tuple[NotLooked, ...] = ()


def choose_baseline(results: ResultSet, by: str) -> Scalar | None:
    """The value that other values are compared with: the value that the question names, or else the first value."""
    values = results.dimensions.get(by, [])
    name = results.question.baseline
    # The text `2` from a command line matches the number 2 from a file.
    return next((value for value in values if name in (value, str(value))), values[0] if values else None)


def match_variants(results: ResultSet, settings: Settings, levels: LevelsOfTrials) -> list[Match]:
    """Pairs every contender with the baseline of its context; a context without the baseline has no pairs."""
    by, variants = results.comparison_dimension, results.variants
    if by is None:
        return []
    contexts: dict[VariantKey, dict[Scalar, VariantKey]] = {}
    for key in variants:
        if (value := dict(key).get(by)) is not None:
            contexts.setdefault(tuple(pair for pair in key if pair[0] != by), {})[value] = key
    base = choose_baseline(results, by)
    # Trials are in the order in which they ran, which is random.
    contexts = {context: contexts[context] for context in sorted(contexts, key=natural_key)}
    # Several dimensions may be compared together: `system,cl`.
    of_dimensions = [fact for name in by.split(",") for fact in results.question.guarantees.get(name, ())]
    groups = frozenset((*results.question.promises, *of_dimensions))
    compared = frozenset(results.headline_metrics)
    blocks, matches, orders = results.interleaved and not results.pooled, [], []
    for context, keys in contexts.items():
        if base is None or base not in keys:
            continue
        for value, key in sorted(keys.items(), key=lambda pair: natural_key(pair[0])):
            if value != base and not is_unrelated(sides := (variants[keys[base]], variants[key]), compared):
                pair, order = examine_order(Pair(by, base, value, *sides, groups, results.is_one_run, blocks), results)
                matches.append(Match(context, keys[base], key, pair))
                orders.append([*order, *find_shared_runs(pair, levels)])
    return attach_findings(matches, orders, settings)


def is_unrelated(sides: Sequence[Sequence[TrialResult]], compared: Set[str]) -> bool:
    """Whether both sides have compared metrics but none in common, such as a write test and a read test in one log."""
    measured = [{metric for trial in side for metric in trial.values if metric in compared} for side in sides]
    return all(measured) and not set.intersection(*measured)


def attach_findings(matches: Sequence[Match], orders: Sequence[Sequence[Finding]], settings: Settings) -> list[Match]:
    """The matches with their findings; equal findings on several matches become one finding on all their trials."""
    every = [
        [*order, *(item for check in PAIR for item in check(match.pair, settings))]
        for match, order in zip(matches, orders, strict=True)
    ]
    findings_of = [[item for item in results if isinstance(item, Finding)] for results in every]
    silent = [tuple(item for item in results if isinstance(item, NotLooked)) for results in every]
    trials: dict[Finding, dict[str, None]] = {}
    for finding in (item for findings in findings_of for item in findings):
        trials.setdefault(replace(finding, trials=()), {}).update(dict.fromkeys(finding.trials))
    merged = {item: replace(item, trials=tuple(ids)) for item, ids in trials.items()}
    return [
        replace(match, findings=tuple(merged[replace(item, trials=())] for item in findings), not_looked=blind)
        for match, findings, blind in zip(matches, findings_of, silent, strict=True)
    ]


def list_paired(matches: Sequence[Match]) -> set[VariantKey]:
    """The variants that are compared with another variant."""
    return {key for match in matches for key in (match.baseline, match.contender)}


def list_unpaired(variants: Variants, matches: Sequence[Match]) -> list[VariantKey]:
    """The variants that have no counterpart, if other variants have one."""
    there = list_paired(matches)
    return [key for key in variants if key not in there] if matches else []
