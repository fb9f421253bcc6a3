"""The worked example of docs/concepts/judge.md equals the judge's output."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from judge_support import asking, both, set_figures
from known_truth_support import MS, change_system, faster, simulate_results
from lab_support import ROOT
from loadstone.format.wording import metric_name
from loadstone.judge.decision_table import TABLE
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report import scenarios
from loadstone.report.terminal.tables import findings, plain_table, show
from loadstone.report.view import View
from loadstone.results.projection import Projection, project_results

PAGE = (ROOT / "docs/concepts/judge.md").read_text()


def example() -> Judgement:
    """lmdb is 1.5 times as fast, the engine takes an eighth of lmdb's time, and one trial of rocksdb was disturbed."""
    stolen = change_system("rocksdb", lambda trial: set_figures(cpu__steal=0.2)(faster(0.8)(trial)), 3)
    alter = both(stolen, set_figures(driver=0.8 * MS))
    question = asking(metrics=("throughput",))
    return judge_results(
        simulate_results({"rocksdb": 1000.0, "lmdb": 1500.0}, repeats=8, change=alter, question=question)
    )


def print_judgement(judgement: Judgement) -> str:
    """The answer, the scenarios and the findings, as on a terminal."""
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
    console.print(judgement.answer, soft_wrap=True)
    console.print(plain_table("scenarios", scenarios.table(View(judgement))))
    for line in findings(judgement):
        console.print(line, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines() if line.strip())


def test_worked_example_is_current_output() -> None:
    lines = PAGE.partition("## A worked example")[2].splitlines()
    block = "\n".join(line[4:].rstrip() for line in lines if line.startswith("    "))
    assert block == print_judgement(example())


def test_deciding_scenario_is_marked() -> None:
    assert not any(row.decides for comparison in example().comparisons for row in comparison.scenarios)
    question = asking(metrics=("throughput",))
    slight = simulate_results(
        {"rocksdb": 1000.0, "lmdb": 1050.0}, repeats=8, change=set_figures(driver=1.1 * MS), question=question
    )
    mark = " worse (so no claim)"
    rows = [line for line in print_judgement(judge_results(slight)).splitlines() if line.endswith(mark)]
    assert [row.strip().partition("  ")[0] for row in rows] == ["without the generator's time (rocksdb)"]


def test_mark_of_deciding_row_states_the_answer() -> None:
    marks = {claim: scenarios.consequence(claim) for claim in ("worse", "same", "refused", "none")}
    assert marks == {
        "worse": "so the claim is suspect",
        "same": "so the claim is suspect",
        "refused": "so no claim",
        "none": "so undecided",
    }


def test_labels_call_the_engine_load_generator() -> None:
    names = ["engine.memory_max", "load.engine.memory_max", "engine.read", "engine.cpu"]
    assert [metric_name(name) for name in names] == [
        "load generator memory max",
        "load phase: load generator memory max",
        "load generator read from storage",
        "processors used by the load generator",
    ]


@pytest.mark.parametrize(("count", "severity"), [(2, "NOTE"), (3, "SUSPECT")])
def test_disturbed_repeats_are_counted_against_the_limit(count: int, severity: str) -> None:
    disturbed = change_system("lmdb", set_figures(cpu__steal=0.2), *range(1, count + 1))
    results = simulate_results({"rocksdb": 1000.0, "lmdb": 1500.0}, repeats=8, change=disturbed)
    hints = {item.hint for item in judge_results(results).all_findings if item.severity.name == severity}
    assert any(f"{count} of 8 repeats are disturbed" in hint for hint in hints)


def test_scenario_names_the_excluded_repeats() -> None:
    disturb = set_figures(cpu__steal=0.2)
    both_disturbed = both(change_system("lmdb", disturb, 1, 2, 3), change_system("rocksdb", disturb, 4))
    (comparison,) = judge_results(
        simulate_results({"rocksdb": 1000.0, "lmdb": 1500.0}, repeats=6, change=both_disturbed)
    ).comparisons[:1]
    assert [(row.name, row.n) for row in comparison.scenarios] == [
        ("as measured", 6),
        # Half of the repeats of lmdb are disturbed: too many to be excluded.
        ("without disturbed trials of rocksdb (r4)", 5),
    ]


def test_printed_interval_covers_every_scenario() -> None:
    comparison = example().comparisons[0]
    assert comparison.ratio.low == min(row.ratio.low or 0.0 for row in comparison.scenarios)
    assert comparison.ratio.high == max(row.ratio.high or 0.0 for row in comparison.scenarios)


def test_answer_is_repeated_where_it_scrolled_away() -> None:
    judgement = example()
    for height, times in ((10, 2), (200, 1)):
        console = Console(file=io.StringIO(), width=300, height=height, force_terminal=True, color_system=None)
        show(console, judgement, project_results(judgement.results, Projection()))
        assert isinstance(console.file, io.StringIO)
        assert console.file.getvalue().count("lmdb holds at least 1.42×") == times


def test_page_has_the_decision_table() -> None:
    for lost in TABLE.values():
        assert f"| {lost.name} |" in PAGE
