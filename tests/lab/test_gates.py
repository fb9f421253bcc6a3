"""Expectations as a gate: exit statuses, JUnit XML, the summary, and the experiment that would decide."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from command_server import Done
from lab_support import command, environment, experiment, loadstone, single_folder
from loadstone.experiment.file import load_experiment
from loadstone.experiment.interleaved import deciding_experiment
from loadstone.judge.judge import judge_results
from loadstone.report.expectation_files import junit, summary, write_files
from loadstone.results.folder import Folder
from loadstone.results.result_set import ResultSet
from report_support import page, pull_request
from test_expectations import answers, make_run, scatter

HOSTILE = '</td><script>alert("x")</script> | `*_'
SIDES = {"old": scatter(1000), "new": scatter(900, seed=2)}
EXPERIMENT = """
systems: {only: {store: lmdb, properties: {lmdb.mapsize: %s}}}
workload: {file: workloads/workloada}
measure: {warmup: 1s}
repeats: {at_least: 3}
"""


def write(path: Path, results: ResultSet, experiment_text: str = "") -> Path:
    """Writes results to a folder, and returns its path."""
    folder = Folder.create_folder(path, results.name, results.question, interleaved=True, experiment=experiment_text)
    for block in range(1, 1 + max(trial.repeat for trial in results.trials)):
        folder.record_block(block, {trial.trial: trial.config for trial in results.trials if trial.repeat == block})
    for trial in results.trials:
        folder.append_trial(trial)
    return path


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        (["throughput >= 0.8x", "errors == 0"], 0),
        (["throughput >= 0.95x"], 1),
        (["throughput >= 0.9x"], 3),
        (["throughput >= 0.9x", "throughput >= 0.95x"], 1),
        (["throughput > 1 apple"], 2),
    ],
)
def test_exit_status_of_check_follows_answers(tmp_path: Path, conditions: list[str], code: int) -> None:
    write(tmp_path / "made", make_run(SIDES))
    done = loadstone(tmp_path, "check", "made", *(f"--expect={item}" for item in conditions), code=code)
    assert all(item.partition(" ")[0] in done.stdout + done.stderr for item in conditions)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("command", ["check", "compare"])
def test_closed_pipe_leaves_files_and_status(tmp_path: Path, command: str, stream: str) -> None:
    write(tmp_path / "made", make_run(SIDES))
    sides = ["made", "made"] if command == "compare" else ["made"]
    options = ["--expect=throughput >= 2000", "--junit=gate.xml", "--summary=gate.md"]
    lab = start_with_closed_pipe(tmp_path, stream, command, *sides, *options)
    assert (lab.returncode, lab.stderr if stream == "stdout" else "") == (1, "")
    assert (tmp_path / "gate.xml").read_text().count("<failure") == 2 * len(sides)
    assert "Expectations: " in (tmp_path / "gate.md").read_text()


@pytest.mark.parametrize("arguments", [["history", "x"], ["show", "x", "--json"], ["export", "x"], ["list"]])
def test_closed_pipe_does_not_fail_the_command(tmp_path: Path, arguments: list[str]) -> None:
    write(tmp_path / "results/x/1", make_run(SIDES))
    lab = start_with_closed_pipe(tmp_path, "stdout", *arguments)
    assert (lab.returncode, lab.stderr) == (0, "")


def test_recorded_expectations_are_checked_again(tmp_path: Path) -> None:
    write(tmp_path / "made", make_run(SIDES, "throughput >= 0.95x"))
    assert "✗ throughput >= 0.95x: false for new ÷ old" in loadstone(tmp_path, "check", "made", code=1).stdout
    assert "✗ throughput >= 0.95x" in loadstone(tmp_path, "show", "made").stdout


def start_with_closed_pipe(home: Path, stream: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose output goes to a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        stdout, stderr = (writer if name == stream else subprocess.PIPE for name in ("stdout", "stderr"))
        text, variables = command(*arguments), environment(home)
        return subprocess.run(text, cwd=home, env=variables, text=True, stdout=stdout, stderr=stderr)
    finally:
        os.close(writer)


def compare_builds(home: Path, *experiments: str) -> Done:
    """Compares one run of each of two builds; the comparison is undecided."""
    for name, level, hour, text in zip("ab", (1000, 500), (0, 2), experiments, strict=True):
        write(home / name, make_run({"only": scatter(level)}, hour=hour), text)
    return loadstone(home, "compare", "a", "b", "--expect", "throughput >= 0.95x", code=3)


def test_undecided_comparison_prints_deciding_experiment(tmp_path: Path) -> None:
    old, new = EXPERIMENT % 1000000, EXPERIMENT % 2000000
    output = compare_builds(tmp_path, old, new).stdout
    text = output[output.index("# This experiment can decide") :]
    document = yaml.safe_load(text)
    assert document["systems"]["new"]["properties"] == {"lmdb.mapsize": 2000000}
    (tmp_path / "decide.yaml").write_text(text.replace("workloads/", f"{Path(__file__).parents[2]}/workloads/"))
    decided = load_experiment(tmp_path / "decide.yaml").experiment
    assert (decided.compare.baseline, decided.repeats.at_least) == ("old", 6)
    assert decided.expect == ("throughput >= 0.95x",)
    assert loadstone(tmp_path, "run", "decide.yaml", "--dry-run").stdout


def test_deciding_experiment_of_few_repeats_is_valid(tmp_path: Path) -> None:
    # A resolved file states every default, such as the maximum number of repeats.
    texts = []
    for size in (1000000, 2000000):
        text = (EXPERIMENT % size).replace("workloads/", f"{Path(__file__).parents[2]}/workloads/")
        (tmp_path / "made.yaml").write_text(text.replace("{at_least: 3}", "3"))
        texts.append(load_experiment(tmp_path / "made.yaml").text_with_defaults)
    output = compare_builds(tmp_path, *texts).stdout
    (tmp_path / "decide.yaml").write_text(output[output.index("# This experiment can decide") :])
    decided = load_experiment(tmp_path / "decide.yaml").experiment
    assert (decided.repeats.at_least, decided.repeats.at_most) == (6, 6)
    assert loadstone(tmp_path, "run", "decide.yaml", "--dry-run").stdout


def test_every_build_is_in_the_deciding_experiment() -> None:
    builds = [[replace(make_run({"only": scatter(1)}), experiment=EXPERIMENT % size)] for size in (1, 2, 3)]
    document = yaml.safe_load(deciding_experiment(builds, ["throughput >= 0.95x"], "abc"))
    assert [*document["systems"]] == document["vary"]["matrix"]["system"] == ["old", "new-1", "new-2"]
    commands = deciding_experiment([*builds, [make_run({"only": scatter(1)})]], ["throughput >= 0.95x"], "abcd")
    assert "loadstone run NEW-3.yaml" in commands


DAMAGED = ("- 1", "hello", "systems: null", "systems: [a]", "systems: {only: {store: lmdb", "\0\1", "? [1]\n: 2")
DAMAGED_PARTS = ("vary: [1]", "vary: {matrix: [1]}", "repeats: 3", "repeats: {at_least: x}", "compare: 1")


@pytest.mark.parametrize("text", [*DAMAGED, *(f"systems: {{only: {{store: lmdb}}}}\n{part}" for part in DAMAGED_PARTS)])
def test_damaged_experiment_leads_to_commands(text: str) -> None:
    builds = [[replace(make_run({"only": scatter(1)}), experiment=text)] for _ in range(2)]
    assert "Six alternating runs of " in deciding_experiment(builds, ["throughput >= 0.95x"], "abc")


def test_recorded_expectations_gate_a_comparison(tmp_path: Path) -> None:
    for name, level in (("a", 1000), ("b", 500)):
        write(tmp_path / name, make_run({"only": scatter(level)}, "throughput > 900"))
    done = loadstone(tmp_path, "compare", "a", "b", "--junit", "gate.xml", code=1)
    assert "✗ throughput > 900" in done.stdout
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"
    for name in "cd":
        write(tmp_path / name, make_run({"only": scatter(1000)}))
    assert "there are no expectations" in loadstone(tmp_path, "compare", "c", "d", "--junit", "x.xml", code=2).stderr


def test_experiments_that_differ_print_commands(tmp_path: Path) -> None:
    old = EXPERIMENT % 1
    output = compare_builds(tmp_path, old, old.replace("workloada", "workloadb")).stdout
    assert "Six alternating runs of " in output
    assert "loadstone compare OLD1,OLD2" in output


def test_logs_of_other_tools_get_their_commands(tmp_path: Path) -> None:
    for name in ("old", "new"):
        text = "variant,repeat,clients,metric,unit,value\nv,1,1,throughput,op/s,5\n"
        (tmp_path / f"{name}.csv").write_text(text.replace("5", f"{len(name)}{ord(name[0])}"))
    output = loadstone(tmp_path, "compare", "old.csv", "new.csv", "--expect", "throughput >= 0.95x", code=3).stdout
    assert "# Six alternating runs of old and new can decide" in output
    assert "NEW6.log --expect 'throughput >= 0.95x'" in output
    assert "loadstone run" not in output


def test_json_of_compare_stays_one_document(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, make_run({"only": scatter(1000)}))
    done = loadstone(tmp_path, "compare", "a", "b", "--json", "--expect", "throughput >= 1x", code=3)
    (expectation,) = yaml.safe_load(done.stdout)["expectations"]
    assert expectation["answer"] == "undecided"


def test_run_is_gated_by_its_file(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    path.write_text(path.read_text() + 'expect: "throughput < 1"\n')
    loadstone(
        tmp_path,
        *("run", path, "--set", "repeats=6", "--expect", "errors == 0"),
        *("--junit", "out/j.xml", "--summary", "s.md"),
        code=1,
    )
    folder = single_folder(tmp_path)
    assert folder.question.expect == ("throughput < 1", "errors == 0")
    cases = ElementTree.parse(tmp_path / "out/j.xml").getroot().findall("testsuite/testcase")
    assert [case.find("failure") is not None for case in cases] == [True, True, False, False]
    assert "**false** | throughput &lt; 1 | system=first" in (tmp_path / "s.md").read_text()
    assert 'class="badge false"' in (folder.path / "report.html").read_text()


def test_summary_is_appended_to_githubs_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judgement = judge_results(make_run(SIDES, "throughput >= 0.8x"))
    shared, own = tmp_path / "step.md", tmp_path / "own.md"
    for path in (shared, own):
        path.write_text("earlier\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shared))
        write_files(judgement, None, path)
    assert shared.read_text() == "earlier\n" + summary(judgement)
    assert own.read_text() == summary(judgement)


def test_gate_without_expectations_is_refused(tmp_path: Path) -> None:
    done = loadstone(tmp_path, "run", experiment(tmp_path), "--junit", "j.xml", code=2)
    assert "there are no expectations" in done.stderr
    assert not (tmp_path / "j.xml").exists()
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("text", ["fast", "reed.p99 < 1s", "read.p98 < 1s"])
def test_invalid_expectation_is_refused_before_the_run(tmp_path: Path, text: str) -> None:
    path = experiment(tmp_path)
    done = loadstone(tmp_path, "run", path, "--set", f"expect=[{text}]", "--dry-run", code=2)
    assert "--set" in done.stderr


def test_every_output_has_every_answer() -> None:
    judgement = judge_results(make_run(SIDES, "throughput >= 0.8x", "throughput >= 0.95x", "throughput >= 0.9x"))
    for text in (page(judgement), pull_request(judgement), summary(judgement)):
        assert all(answer in text for answer in ("true", "false", "undecided"))
    root = ElementTree.fromstring(junit(judgement))
    assert root.attrib == {"tests": "3", "failures": "1", "errors": "1"}


def test_hostile_names_stay_text() -> None:
    results = make_run({"old": scatter(1000), HOSTILE + "\x00\x1b": scatter(900, seed=2)}, "throughput >= 1x")
    judgement = judge_results(results)
    assert answers(results) == ["false"]
    assert "<script>" not in page(judgement) + summary(judgement)
    case = ElementTree.fromstring(junit(judgement)).find(".//testcase")
    assert case is not None
    assert HOSTILE in case.attrib["name"]
    (row,) = [line for line in summary(judgement).splitlines() if line.startswith("| **false**")]
    assert row.replace("\\|", "").count("|") == 6
