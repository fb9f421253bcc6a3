"""When results are joined, the settings of each set still apply to its own trials."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping

import pytest

from judge_support import Change, asking, both, experiment, set_figures
from loadstone.commands.show_results import judgement_document, replace_infinite
from loadstone.errors import LoadstoneError
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.results.export import write_csv
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.union import join_results

CACHED = set_figures(device__read=1e8)
UNVERIFIED = set_figures(without=("verified",))
FAILING = set_figures(errors=5_000)


def join_runs(change: Change, first: Question, second: Question) -> ResultSet:
    """Two runs of the same speed, from experiments with these questions."""
    later = both(change, set_figures(cpu__steal=0.011))
    return join_results(
        [experiment(change, name="before", question=first), experiment(later, name="after", question=second)]
    )


def invalid(judgement: Judgement) -> Mapping[str, set[bool]]:
    """Whether the trials of each set are invalid."""
    entries: dict[str, set[bool]] = {}
    for trial in judgement.trials:
        entries.setdefault(trial.partition(":")[0], set()).add(judgement.trial_verdict(trial) == Verdict.INVALID)
    return entries


@pytest.mark.parametrize(
    ("change", "question", "check"),
    [(CACHED, asking(claims="device"), "page-cache"), (UNVERIFIED, asking(verify=True), "unverified")],
)
def test_sides_invalid_in_their_sets_are_not_ranked(change: Change, question: Question, check: str) -> None:
    both = judge_results(join_runs(change, question, question))
    assert invalid(both) == {"before": {True}, "after": {True}}
    assert {comparison.claim for comparison in both.comparisons} == {"refused"}
    assert check in {finding.check for finding in both.all_findings}
    # Without the requirement in the joined questions, the trials are not invalid.
    assert judge_results(join_runs(change, asking(), asking())).verdict == Verdict.SUSPECT


def test_loosened_threshold_applies_only_to_its_set() -> None:
    loose = asking(checks={"errors": {"share": 0.1}})
    assert invalid(judge_results(join_runs(FAILING, loose, asking()))) == {"before": {False}, "after": {True}}
    assert invalid(judge_results(join_runs(FAILING, asking(), loose))) == {"before": {True}, "after": {False}}
    assert invalid(judge_results(join_runs(FAILING, loose, loose))) == {"before": {False}, "after": {False}}


def test_threshold_of_a_set_withholds_its_figures() -> None:
    few = set_figures(n=1_000, read__p99__9=5e7)
    loose = asking(checks={"too-few-samples": {"beyond": 1}})
    cells = judge_results(join_runs(few, loose, asking())).cells
    assert {
        dict(variant)["run"]: bool(cell.withheld) for (variant, metric), cell in cells.items() if metric == "read.p99.9"
    } == {"before": False, "after": True}


@pytest.mark.parametrize(
    "projection",
    [
        Projection(filter="system:lmdb"),
        Projection(col=("system",)),
        # Pooled repeats are numbered again.
        Projection(col=("run",), row=()),
    ],
)
def test_a_projection_keeps_what_each_set_asks(projection: Projection) -> None:
    claiming = asking(claims="device")
    result = invalid(judge_results(project_results(join_runs(CACHED, claiming, asking()), projection).results))
    assert result == {"before": {True}, "after": {False}}


def test_unknown_threshold_of_one_set_is_named() -> None:
    with pytest.raises(LoadstoneError, match=r"there is no threshold or check error\b"):
        judge_results(join_runs(FAILING, asking(), asking(checks={"error": {"share": 0.1}})))


def test_joined_results_are_ordinary_data_and_tables() -> None:
    both = join_runs(CACHED, asking(claims="device"), asking())
    exported = json.loads(json.dumps(replace_infinite(judgement_document(judge_results(both))), allow_nan=False))
    assert exported["verdict"] == "invalid"
    assert {value["claim"] for value in exported["comparisons"]} == {"refused"}
    table = io.StringIO()
    write_csv(both, table)
    rows = list(csv.DictReader(io.StringIO(table.getvalue())))
    assert {row["run"] for row in rows} == {"before", "after"}
    assert len(rows) == sum(len(trial.values) for trial in both.trials)
