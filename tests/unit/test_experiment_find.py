"""Searches in experiment files: defaults, conflicts, and the question for the judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment_support import load_text, mistakes, warnings
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.judge.search import read_rule
from loadstone.search.objective import parse_objective
from loadstone.search.rule import Rule

BASE = "systems: [lmdb]\nworkload: WORKLOADS/workloada\n"


def experiment(directory: Path, text: str) -> Experiment:
    """The experiment with this text appended to BASE."""
    return load_text(directory, BASE + text).experiment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("find: {}", Rule("clients", 1, 1024, None, 3, 6)),
        ("find: {over: rate}", Rule("rate", 1_000, 1_000_000, None, 3, 6)),
        ("find: {from: 2000}", Rule("clients", 2000, 4000, None, 3, 6)),
        ("find: {over: rate, from: 0.5, to: 2.5}", Rule("rate", 0.5, 2.5, None, 3, 6)),
        ("find: {such_that: read.p99 < 1s}", Rule("clients", 1, 1024, parse_objective("read.p99 < 1s"), 3, 6)),
        ("find: {}\nrepeats: 4", Rule("clients", 1, 1024, None, 4, 8)),
        ("find: {}\nrepeats: {at_most: 4}", Rule("clients", 1, 1024, None, 3, 4)),
        ("find: {}\nrepeats: {at_least: 5, at_most: 5}", Rule("clients", 1, 1024, None, 5, 5)),
    ],
)
def test_missing_keys_of_a_search_are_filled_in(tmp_path: Path, text: str, expected: Rule) -> None:
    result = experiment(tmp_path, text)
    assert read_rule(result.question_for_judge()) == expected
    # The resolved experiment has the same search.
    (tmp_path / "again").mkdir()
    again = load_text(tmp_path / "again", load_text(tmp_path, BASE + text).text_with_defaults)
    assert again.experiment == result
    assert again.warnings == ()


def test_without_find_there_is_no_search(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, BASE)
    assert loaded.experiment.find is None
    assert read_rule(loaded.experiment.question_for_judge()) is None
    assert "find" not in loaded.text_with_defaults


def test_a_search_is_planned_with_its_first_load(tmp_path: Path) -> None:
    base = BASE.replace("workloada", "workload{letter}")
    plan = plan_experiment(load_text(tmp_path, f"{base}vary: {{letter: [a, c]}}\nfind: {{from: 4}}\n").experiment)
    assert [dict(variant.config) for variant in plan.variants] == [
        {"system": "lmdb", "letter": letter, "clients": 4} for letter in "ac"
    ]
    assert [variant.slug for variant in plan.variants] == ["a-clients4", "c-clients4"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("find: {to: 1}", "find.to is 1, less than twice find.from (1)"),
        ("find: {from: 1.5}", "find.from must be a whole number of clients, got 1.5"),
        ("find: {}\nvary: {clients: [1, 2]}", "`find` searches over clients, and vary.clients varies it"),
        ("find: {}\nrate: 10", "`find` searches over clients, but a rate is set"),
        ("find: {over: rate}\nvary: {rate: [1, 2]}", "`find` searches over rate, and vary.rate varies it"),
        ("find: {such_that: fast}", 'find.such_that: "fast" is not an objective'),
        (
            "find: {such_that: p99 > 1s}",
            'find.such_that: "p99 > 1s" is not a condition that holds at low loads and fails at high loads',
        ),
        ("find: {such_that: p98 < 1ms}", "the percentile p98 is not recorded"),
        ("find: {such_that: reed.p99 < 1ms}", 'there is no operation "reed"'),
        ("find: {}\nrepeats: {at_least: 4, at_most: 3}", "repeats.at_most is 3, less than at_least (4)"),
    ],
)
def test_contradictions_are_mistakes(tmp_path: Path, text: str, message: str) -> None:
    assert mistakes(tmp_path, BASE + text) == [message]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("find: {}", []),
        ("find: {}\nclients: 4", ["`clients` has no effect, because `find` searches over it"]),
        ("find: {over: rate}\nclients: 4\narrival: poisson", []),
        ("find: {over: rate}\nrate: 4", ["`rate` has no effect, because `find` searches over it"]),
        ("find: {}\nrepeats: {until: 5%}", ["repeats.until has no effect with `find`"]),
    ],
)
def test_keys_without_effect_are_warnings(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert warnings(tmp_path, BASE + text) == expected
