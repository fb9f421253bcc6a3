"""Every check fires and stays silent, at the edges of its thresholds, and says what its page says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import judge_cases_differences
import judge_cases_failures
import judge_cases_generator
import judge_cases_incomplete
import judge_cases_page_cache
import judge_cases_plausibility
import judge_cases_rate
import judge_cases_samples
import judge_cases_steadiness
from conftest import ROOT
from judge_support import Case, experiment
from loadstone.engine.events import Note
from loadstone.judge.finding import Severity, Verdict
from loadstone.judge.findings import note_findings
from loadstone.judge.judge import judge
from loadstone.judge.settings import DEFAULTS, Settings
from loadstone.results.result_set import Question

PAGES = ROOT / "docs/checks"
CASES = [
    *judge_cases_differences.CASES,
    *judge_cases_failures.CASES,
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
    found = case.findings()
    if case.severity is None:
        assert found == []
        return
    assert max(finding.severity for finding in found) == case.severity
    assert case.message in [finding.message for finding in found]
    for finding in found:
        assert finding.hint
        assert not f"{finding.message}{finding.hint}".endswith(".")


def test_nothing_is_held_against_a_sound_experiment() -> None:
    judgement = judge(experiment())
    assert judgement.all_findings == []
    assert judgement.verdict == Verdict.VALID


@pytest.mark.parametrize("check", DEFAULTS)
def test_every_check_has_a_page_and_is_tested_both_ways(check: str) -> None:
    cases = [case for case in CASES if case.check == check]
    assert {case.severity is None for case in cases} == {True, False}
    page = (PAGES / f"{check}.md").read_text()
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    assert headings == [check, "Formula", "Thresholds", "Why", "What to do", "Example"]
    example = page.partition("## Example")[2].split("\n\n")
    messages = {case.message for case in cases if case.severity is not None}
    assert next(line.strip() for line in example if line.startswith("    ")) in messages


@pytest.mark.parametrize("check", DEFAULTS)
def test_a_page_states_every_threshold_with_its_default(check: str) -> None:
    section = (PAGES / f"{check}.md").read_text().partition("## Thresholds")[2].partition("##")[0]
    stated = {name: float(number) for name, number in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", section, re.MULTILINE)}
    assert stated == DEFAULTS[check]


def test_the_index_names_every_page_and_no_other() -> None:
    linked = re.findall(r"\]\(([\w-]+)\.md\)", (PAGES / "README.md").read_text())
    assert linked == list(DEFAULTS)
    assert {path.stem for path in PAGES.glob("*.md")} == {*DEFAULTS, "README"}


def test_checks_are_known_by_the_names_that_they_had() -> None:
    question = Question(checks={"unlike-hosts": {"memory": 0.5}})
    assert Settings.of(question).threshold("hosts-differ", "memory") == 0.5
    note = Note("unlike-hosts", "another machine", "use one")
    trial = replace(next(iter(experiment().trials)), notes=(note,))
    [finding] = note_findings(trial, (), ())
    assert (finding.check, finding.severity) == ("hosts-differ", Severity.SUSPECT)
    assert [*note_findings(trial, ("hosts-differ",), ())] == []
