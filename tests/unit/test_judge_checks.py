"""Every check on both sides of its thresholds, and with the messages of its page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import judge_cases_differences
import judge_cases_failures
import judge_cases_faults
import judge_cases_generator
import judge_cases_incomplete
import judge_cases_page_cache
import judge_cases_plausibility
import judge_cases_rate
import judge_cases_samples
import judge_cases_steadiness
from conftest import ROOT
from judge_support import CHECKS, Case, Change, experiment, set_figures
from loadstone.engine.events import Note
from loadstone.judge.finding import Severity, Verdict
from loadstone.judge.findings import judge_trial, note_findings
from loadstone.judge.judge import judge_results
from loadstone.judge.settings import DEFAULTS, Settings
from loadstone.judge.settings import PAGES as PAGE_OF
from loadstone.results.result_set import Question
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.search import rule
from loadstone.statistics import availability, steady

PAGES = ROOT / "docs/checks"
PAGE_WORDS_MAX = 250
CASES = [
    *judge_cases_differences.CASES,
    *judge_cases_failures.CASES,
    *judge_cases_faults.CASES,
    *judge_cases_generator.CASES,
    *judge_cases_incomplete.CASES,
    *judge_cases_page_cache.CASES,
    *judge_cases_plausibility.CASES,
    *judge_cases_rate.CASES,
    *judge_cases_samples.CASES,
    *judge_cases_steadiness.CASES,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.what}")
def test_a_check_fires_and_stays_silent(case: Case) -> None:
    result = case.findings()
    if case.severity is None:
        assert result == []
        return
    assert max(finding.severity for finding in result) == case.severity
    assert case.message in [finding.message for finding in result]
    for finding in result:
        assert finding.hint
        assert not f"{finding.message}{finding.hint}".endswith(".")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_figures(errors=1), "1 of 100,000 operations failed (0.001 %)"),
        (set_figures(carried=1, carried__max=9e9, runtime=1e10), "1 warm-up operation had not completed when"),
        (set_figures(due=1, censored=1), "100 % of the 1 operation that was due never completed"),
        (set_figures(ledger__acknowledged=1, ledger__lost=1), "1 acknowledged write is lost (of 1 acknowledged)"),
        (set_figures(ledger__acknowledged=9, ledger__corrupt=1), "1 field contains a value that no write of the trial"),
        (set_figures(ledger__acknowledged=9, ledger__unsure=1, ledger__unsettled=1), "1 field and 1 operation"),
    ],
)
def test_counts_of_one_are_singular(change: Change, message: str) -> None:
    findings = judge_results(experiment(lambda trial: replace(change(trial), loop="open"))).all_findings
    assert any(message in finding.message for finding in findings), [finding.message for finding in findings]


def test_nothing_is_held_against_a_sound_experiment() -> None:
    judgement = judge_results(experiment())
    assert judgement.all_findings == []
    assert judgement.verdict == Verdict.VALID


def page_of(check: str) -> str:
    """The name of a finding's page."""
    return PAGE_OF.get(check, check)


@pytest.mark.parametrize("check", DEFAULTS)
def test_every_check_is_tested_both_ways(check: str) -> None:
    # `view` needs results under another question: see tests/unit/test_judge_liars_views.py.
    if check not in ("view", "interrupted"):
        assert {case.severity is None for case in CASES if case.check == check} == {True, False}


@pytest.mark.parametrize("name", sorted({*map(page_of, DEFAULTS)}))
def test_every_page_has_an_example_and_all_thresholds(name: str) -> None:
    checks = [check for check in DEFAULTS if page_of(check) == name]
    page = (PAGES / f"{name}.md").read_text()
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    assert headings == [name, "Formula", "Thresholds", "Why", "What to do", "Example"]
    assert all(f"`{check}`" in page for check in checks if check != name)
    example = next(line.strip() for line in page.partition("## Example")[2].split("\n") if line.startswith("    "))
    messages = {case.message for case in CASES if case.check in checks and case.severity is not None}
    assert example in messages or name == "view"
    section = page.partition("## Thresholds")[2].partition("##")[0]
    stated: dict[str, dict[str, float]] = {check: {} for check in checks}
    for check, threshold, number in re.findall(r"^\| (?:([\w-]+) )?`(\w+)` \| ([\d.]+) \|", section, re.MULTILINE):
        stated[check or name][threshold] = float(number)
    assert stated == {check: DEFAULTS[check] for check in checks}


# The index has a row for each check, so a new check makes it longer.
@pytest.mark.parametrize("path", sorted({*PAGES.glob("*.md")} - {PAGES / "README.md"}), ids=lambda path: path.stem)
def test_page_of_check_is_short(path: Path) -> None:
    # Bars of tables and symbols in formulas are not words.
    assert sum(bool(re.search(r"\w", word)) for word in path.read_text().split()) <= PAGE_WORDS_MAX


def test_the_index_names_every_page_and_no_other() -> None:
    linked = re.findall(r"\]\(([\w-]+)\.md\)", (PAGES / "README.md").read_text())
    assert sorted(linked) == sorted({*map(page_of, DEFAULTS)})
    assert {path.stem for path in PAGES.glob("*.md")} == {*linked, "README"}


def test_index_states_current_number_of_checks() -> None:
    page = (PAGES / "README.md").read_text()
    assert f"There are {CHECKS} checks, and {len(DEFAULTS) - CHECKS} more for faults." in page
    assert re.findall(r"\d+ of (\d+) checks ran in full", page) == [str(CHECKS)]


def test_other_packages_use_default_thresholds() -> None:
    copies = {
        ("not-steady", "effect"): steady.EFFECT_MIN,
        ("not-steady", "alpha"): steady.ALPHA,
        ("before-unsteady", "windows"): availability.WINDOWS_MIN,
        ("rate-not-held", "missed"): round(1 - rule.DELIVERED, 6),
    }
    assert copies == {(check, name): DEFAULTS[check][name] for check, name in copies}


def test_checks_keep_their_earlier_names() -> None:
    question = Question(checks={"unlike-hosts": {"memory": 0.5}})
    assert Settings.from_question(question).check_threshold("sides-differ", "memory") == 0.5
    note = Note("unlike-hosts", "another machine", "use one")
    trial = replace(next(iter(experiment().trials)), notes=(note,))
    [finding] = note_findings(trial, (), ())
    assert (finding.check, finding.severity) == ("sides-differ", Severity.SUSPECT)
    assert [*note_findings(trial, ("sides-differ",), ())] == []


@pytest.mark.parametrize(
    ("slowest_s", "runtime_s", "tail_s", "is_stall"),
    [(15, 40, 0.01, True), (15, 400, 0.01, False), (0.9, 4, 0.01, False), (15, 40, 2, False), (1, 20, 0.1, True)],
)
def test_slowest_operation_reveals_a_stall_without_a_series(
    slowest_s: float, runtime_s: float, tail_s: float, is_stall: bool
) -> None:
    figures = {"runtime": runtime_s, "read.max": slowest_s, "all.p99.9": tail_s, "load.insert.max": 30}
    values = values_by_metric(*(Value(metric, value * 1e9, "ns", 100_000) for metric, value in figures.items()))
    findings = judge_trial(TrialResult(trial="a", config={}, repeat=1, values=values), None, Settings())
    assert any(finding.check == "stalled" for finding in findings) == is_stall
