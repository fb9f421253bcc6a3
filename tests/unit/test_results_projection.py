"""Projections and filters: other tables of one set of trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.results.filter import Names, parse_filter
from loadstone.results.projection import Projection, complete_metric, project_results
from loadstone.results.result_set import variant_name
from loadstone.results.union import join_results, name_sides
from results_support import matrix

RESULTS = matrix(
    {(system, letter): [1.0, 2.0] for system in ("lmdb", "redb") for letter in "ac"},
    ("system", "letter"),
    interleaved=True,
)
NAMES: Names = {"system": "lmdb", "clients": 2, "letter": "a", "how": "not synced", "fast": True}


@pytest.mark.parametrize(
    ("expression", "passes"),
    [
        ("", True),
        ("system:lmdb", True),
        ("system:redb", False),
        ("-system:redb", True),
        ("system:lmdb clients:2", True),
        ("system:lmdb AND clients:3", False),
        ("system:redb OR clients:2", True),
        ("system:redb OR clients:3 OR letter:a", True),
        ("system:redb clients:2 OR letter:a", True),
        ("system:redb AND (clients:2 OR letter:a)", False),
        ("clients:(1 OR 2)", True),
        ("-clients:(1 OR 2)", False),
        ("system:/^l.*b$/", True),
        ("letter:/[bc]/", False),
        ('how:"not synced"', True),
        ("fast:true", True),
        ("none:x", False),
        ("-(system:lmdb letter:a)", False),
    ],
)
def test_a_filter_lets_the_right_trials_pass(expression: str, passes: bool) -> None:
    assert parse_filter(expression)(NAMES) is passes


@pytest.mark.parametrize(
    "expression",
    ["system", "system:", "(system:lmdb", "system:lmdb)", "system:/[/", "OR", "AND", "-", "x:(1 OR 2"],
)
def test_a_filter_that_makes_no_sense_is_refused(expression: str) -> None:
    with pytest.raises(LoadstoneError, match=r"the filter `.*` is invalid: "):
        parse_filter(expression)


def test_without_wishes_the_compared_dimension_makes_the_columns() -> None:
    projected = project_results(RESULTS, Projection())
    assert (projected.table, projected.row, projected.col) == ((), ("letter",), "system")
    assert projected.results.question.by == "system"
    assert projected.results.interleaved
    assert len(projected.results.trials) == 8


def test_omitted_key_is_pooled_and_reported() -> None:
    projected = project_results(RESULTS, Projection(row=()))
    assert projected.results.warnings == (
        "pooled over letter: trials that differ only in dropped dimensions count as repeats",
    )
    assert projected.results.pooled
    assert {
        variant_name(key): [trial.repeat for trial in trials] for key, trials in projected.results.variants.items()
    } == {
        "system=lmdb": [1, 2, 3, 4],
        "system=redb": [1, 2, 3, 4],
    }


def test_several_column_keys_make_one_dimension() -> None:
    projected = project_results(RESULTS, Projection(col=("letter", "system"), row=()))
    assert list(projected.results.dimensions["letter,system"]) == ["a,lmdb", "c,lmdb", "a,redb", "c,redb"]
    assert projected.results.interleaved


def test_filter_removes_trials_and_their_plan() -> None:
    projected = project_results(RESULTS, Projection(filter="letter:a"))
    assert {trial.config["letter"] for trial in projected.results.trials} == {"a"}


@pytest.mark.parametrize(
    ("projection", "message"),
    [
        (Projection(row=("sistem",)), 'there is no key "sistem" in made\nhint: did you mean "system"'),
        (Projection(filter="letter:z"), "no trial in made matches the filter `letter:z`"),
        (Projection(metrics=("read.p98",)), 'there is no metric "read.p98" in made\nhint: did you mean read.p99'),
    ],
)
def test_a_wish_that_cannot_be_met_is_named(projection: Projection, message: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        project_results(RESULTS, projection)
    assert message in str(caught.value)


def test_short_name_of_a_metric_means_all_operations() -> None:
    assert [complete_metric(name, ("all.p99", "read.p99", "throughput")) for name in ("p99", "throughput", "p98")] == [
        "all.p99",
        "throughput",
        "p98",
    ]


def test_runs_are_compared_by_their_dimension() -> None:
    first = matrix({("lmdb", "a"): [1.0]}, ("system", "letter"), name="first")
    second = matrix({("lmdb", "a"): [2.0]}, ("system", "letter"), name="second")
    both = join_results([first, second])
    assert [trial.config for trial in both.trials] == [
        {"run": "first", "system": "lmdb", "letter": "a"},
        {"run": "second", "system": "lmdb", "letter": "a"},
    ]
    assert (both.question.by, both.question.baseline, both.interleaved) == ("run", "first", False)


def test_dimension_repeating_the_run_is_omitted() -> None:
    first = matrix({("accelerated",): [4.0]}, ("variant",), name="first")
    second = matrix({("regular",): [1.0]}, ("variant",), name="second")
    assert [trial.config for trial in join_results([first, second]).trials] == [{"run": "first"}, {"run": "second"}]
    assert [trial.trial for trial in join_results([first, first]).trials] == [
        "first#1:accelerated-r1",
        "first#2:accelerated-r1",
    ]
    assert len({trial.trial for trial in join_results([first, first]).trials}) == 2


def test_side_of_several_runs_has_their_common_name() -> None:
    assert name_sides(["nosync.1", "nosync.2", "sync.1", "sync.2"], [2, 2]) == ["nosync", "sync"]
    assert name_sides(["a1", "a2", "b"], [2, 1]) == ["a", "b"]
    assert name_sides(["redis7.0-1", "redis7.0-2", "x.10", "x.11"], [2, 2]) == ["redis7.0", "x"]
    # Without a common prefix, or with equal prefixes on both sides, a side is named after its first run.
    assert name_sides(["old", "new", "x1", "x2"], [2, 2]) == ["old", "x1"]
    assert name_sides(["exp/1", "exp/2", "exp/3", "exp/4"], [2, 2]) == ["exp/1", "exp/3"]
    # Digits in a directory's name are not run numbers.
    assert name_sides(["v1/a", "v1/b", "v2/a", "v2/b"], [2, 2]) == ["v1", "v2"]


def test_equal_file_names_get_their_directories(tmp_path: Path) -> None:
    sets = []
    for path in (tmp_path / week / "logs" / f"run-{number}.log" for week in ("w46", "w47") for number in (1, 2)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        sets.append(replace(matrix({("a",): [1.0]}, ("variant",), name=path.name), path=path))
    assert join_results([sets[:2], sets[2:]]).dimensions["run"] == ["w46", "w47"]
