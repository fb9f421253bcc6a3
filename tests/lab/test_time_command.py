"""`loadstone time`: interleaved executions, judged; failures, timeouts and effects of the order are reported."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab_support import ROOT, loadstone, single_folder, start, trials
from loadstone.commands.time import create_commands, main
from loadstone.experiment.kind import CommandContext, CommandUse, Ended
from loadstone.fleet.command import Launcher
from loadstone.importers.read import read_file
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.observe.watch import Watch
from loadstone.report.reproduce import recipe
from loadstone.results.folder import Folder
from loadstone.results.result_set import Question
from loadstone.runner.progress import PlainLines
from loadstone.runner.time_commands import Timed, Timing
from loadstone.statistics.distributions import binomial_tail
from loadstone.statistics.intervals import find_outliers, median_rank

MS = 1_000_000


def compare(home: Path, *arguments: str) -> dict[str, Any]:
    """The JSON document of `loadstone time`."""
    document: dict[str, Any] = json.loads(loadstone(home, "time", "--json", *arguments).stdout)
    return document


class ScriptedTiming(Timing):
    """A timing whose executions take their times from a script: `duration(name, number)`, ns."""

    duration: Callable[[str, int], float]
    executions = 0

    def launch(self, launcher: Launcher, name: str, text: str, files: Path, watch: Watch | None) -> Ended:
        """An execution that has ended."""
        self.executions += 1
        use = CommandUse(round(self.duration(text, self.executions)), MS, None)
        return Ended(0, files / "stdout", files / "stderr", use, CommandContext(files, files))


def judge_script(home: Path, duration: Callable[[str, int], float], **options: Any) -> tuple[str, Judgement]:
    """The reason why a timing of `a` and `b` stopped, and its judgement."""
    question = Question(by="command", baseline="a", metrics=("time",), guarantees={"command": ("work",)})
    folder = Folder.create_folder(home / "results/time/now", "time", question, interleaved=True)
    timing = ScriptedTiming([Timed("a", "a"), Timed("b", "b")], folder, PlainLines(Console(file=StringIO())), **options)
    timing.duration = duration
    return timing.run(0), judge_results(folder.load_results())


def spread(number: int) -> float:
    """A deviation of up to 1 %, which varies between executions."""
    return 1 + 0.01 * math.sin(7.0 * number)


def test_narrow_ratio_ends_the_timing(tmp_path: Path) -> None:
    reason, judgement = judge_script(tmp_path, lambda name, number: (100 if name == "a" else 120) * MS * spread(number))
    assert reason == "the intervals are at most 5% wide"
    (comparison,) = judgement.comparisons
    assert (comparison.claim, comparison.ratio.n, str(judgement.verdict)) == ("worse", 6, "valid")
    assert comparison.ratio.value == pytest.approx(1.2, rel=0.01)
    assert not [finding for finding in judgement.all_findings if finding.check == "not-steady"]


def test_wide_ratio_is_repeated_until_the_limit(tmp_path: Path) -> None:
    reason, judgement = judge_script(
        tmp_path, lambda name, number: 100 * MS * spread(number) ** 30, rounds_max=20, width=0.01
    )
    assert reason == "the limit of 20 rounds was reached"
    assert len(judgement.results.trials) == 40
    assert judge_script(tmp_path / "late", lambda *_: MS, limit_seconds=0.0, width=0.0)[0] == (
        "the intervals are at most 0% wide"
    )
    reason, _ = judge_script(tmp_path / "limit", lambda _, number: MS * spread(number), limit_seconds=0.0, width=0.0)
    assert reason == "the time limit of 0 s has passed"


def test_slow_second_run_is_an_order_effect(tmp_path: Path) -> None:
    _, judgement = judge_script(
        tmp_path, lambda name, number: (100 if number % 2 else 150) * MS * spread(number), rounds_max=8
    )
    (finding,) = [finding for finding in judgement.all_findings if finding.check == "not-steady"]
    assert "ran second in a block has 1.50× the time of the first" in finding.message
    (comparison,) = judgement.comparisons
    assert comparison.claim == "none"


def test_carryover_to_one_side_is_suspect(tmp_path: Path) -> None:
    names: list[str] = []

    def duration(name: str, number: int) -> float:
        names.append(name)
        # `b` takes twice as long directly after `a`.
        return (200 if names[-2:] == ["a", "b"] else 100) * MS * spread(number)

    _, judgement = judge_script(tmp_path, duration, rounds_max=16, width=0.0)
    (finding,) = [finding for finding in judgement.all_findings if finding.check == "not-steady"]
    assert (
        "directly after a, b has 1.99× the time that it has after itself; a directly after b has 1.00×"
        in finding.message
    )
    assert str(judgement.verdict) == "suspect"


def test_rounds_are_balanced_and_kept(tmp_path: Path) -> None:
    document = compare(tmp_path, "sleep 0.01", "true", "--runs", "6")
    comparison = next(pair for pair in document["comparisons"] if pair["metric"] == "time")
    assert (comparison["baseline"], comparison["n"]) == ("sleep 0.01", 6)
    folder = single_folder(tmp_path)
    assert document["results"] == str(folder.path.relative_to(tmp_path))
    # Each round has both commands, and each command runs first in half of the rounds.
    rounds = [{trial.repeat for trial in trials(folder)[at : at + 2]} for at in range(0, 12, 2)]
    assert rounds == [{number} for number in range(1, 7)]
    first = [trial.config["command"] for trial in trials(folder)[::2]]
    assert first.count("sleep 0.01") == 3
    again = recipe(folder.load_results())
    assert again is not None
    assert " time --json 'sleep 0.01' true" in again.command


def test_preparation_precedes_each_execution(tmp_path: Path) -> None:
    compare(tmp_path, "echo run >> log", "cat log", "-p", "echo prepare >> log", "-w", "1", "--runs", "6")
    text = (tmp_path / "log").read_text().split()
    assert (text.count("prepare"), text.count("run")) == (14, 7)
    assert all(before == "prepare" for before, line in pairwise(text) if line == "run")


def run_time(home: Path, *arguments: str) -> None:
    """Runs `loadstone time` in this process, in a directory."""
    with contextlib.chdir(home):
        assert main([*arguments, "--share-host"]) == 0


def test_options_of_hyperfine_are_known(tmp_path: Path) -> None:
    options = ["-m", "6", "-M", "6", "-s", "echo {n} >> setup", "-L", "n", "0.01,0.02", "--export-json", "times.json"]
    run_time(tmp_path, "sleep {n}", "true", "-S", "bash -o pipefail", *options)
    assert (tmp_path / "setup").read_text().split() == ["0.01", "0.02", "{n}"]
    names = [command["command"] for command in json.loads((tmp_path / "times.json").read_text())["results"]]
    assert names == ["sleep 0.01", "sleep 0.02", "true"]
    # The importer of hyperfine's results checks the times against their mean, median and range.
    runs = [run.result for run in read_file(tmp_path / "times.json", {})]
    assert len(runs) == 18
    assert all((run.value("time") or 0) > 10e6 for run in runs[:12])


def test_programs_run_without_a_shell(tmp_path: Path) -> None:
    run_time(tmp_path, "touch 'a  $b'", "-N", "--runs", "6")
    assert (tmp_path / "a  $b").exists()


GUIDE = (ROOT / "docs/guides/any-command.md").read_text()


@pytest.mark.parametrize("line", re.findall(r"(?m)^    loadstone time (.*)$", GUIDE))
def test_guide_commands_are_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    (tmp_path / "data").write_text("foo\nbar\n" * 10)
    run_time(tmp_path, *shlex.split(line), "--max-runs", "6")
    assert capsys.readouterr().out.count("6 runs") == 2


def test_figures_are_printed_for_each_command(tmp_path: Path) -> None:
    large = "python3 -c 'x = bytearray(30 << 20)'"
    text = loadstone(tmp_path, "time", "true", large, "--runs", "6", "-n", "nothing").stdout
    first, second = text.partition("Command 2: ")[::2]
    assert "Command 1: nothing" in first
    assert text.count("6 runs") == 2
    # A process as small as the launcher has no figure for its peak memory.
    assert "(peak)" in second
    assert "(peak)" not in first


def test_failing_command_ends_the_timing(tmp_path: Path) -> None:
    failed = loadstone(tmp_path, "time", "echo broken >&2; exit 3", "true", code=1).stderr
    assert "exited with status 3" in failed
    assert "broken" in failed
    assert "--ignore-failure" in failed
    (trial,) = [trial for trial in trials(single_folder(tmp_path)) if trial.end == "failed"]
    assert trial.value("time")


def test_failures_are_timed_on_request(tmp_path: Path) -> None:
    document = compare(tmp_path, "-i", "exit 3", "true", "--runs", "6")
    assert {pair["n"] for pair in document["comparisons"]} == {6}
    assert any("exited with status 3" in finding["message"] for finding in document["findings"])


def test_hanging_command_is_killed(tmp_path: Path) -> None:
    failed = loadstone(tmp_path, "time", "sleep 4711", "--timeout", "500ms", code=1).stderr
    assert "`sleep 4711` did not finish within 0.5 s" in failed
    assert "--timeout" in failed
    assert subprocess.run(["pgrep", "-f", "^sleep 4711"]).returncode == 1


def test_daemons_are_killed_and_named(tmp_path: Path) -> None:
    document = compare(tmp_path, "setsid sleep 4712 & sleep 0.01", "sleep 0.01", "--runs", "6")
    findings = [finding for finding in document["findings"] if finding["check"] == "survivors"]
    assert len(findings) == 6
    assert "sleep" in findings[0]["message"]
    # A killed process may not have finished its work.
    assert {finding["severity"] for finding in findings} == {"suspect"}
    assert subprocess.run(["pgrep", "-f", "^sleep 4712"]).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["echo 'a"], 1, "the shell cannot parse"),
        (["no-such-program"], 1, "there is no program no-such-program"),
        (["true", "--runs", "3"], 2, "--runs must be at least 6"),
        (["true", "-m", "3"], 2, "--min-runs must be at least 6"),
        (["true", "-m", "9", "-M", "8"], 2, "--min-runs 9 exceeds --max-runs 8"),
        (["true", "-r", "6", "-m", "6"], 2, "--runs cannot be combined"),
        (["true", "-L", "x", "1,2"], 2, "no command uses {x}"),
        (["true", "-S", "no-such-shell"], 2, 'there is no shell "no-such-shell"'),
        (["true 'a", "-N"], 2, "cannot be split into arguments"),
        (["true", "-u", "second"], 2, "each time has a suitable unit"),
        (["true", "--parameter-scan", "x", "1", "2"], 2, "list the values: -L NAME 1,2,3"),
        (["true", "--setup", "exit 4"], 1, "exited with status 4"),
        (["true", "--width", "wide"], 2, "--width must be above 0"),
        (["true", "--warmups", "-1"], 2, "--warmups must be 0 or more"),
        (["true", " "], 2, "a command is empty"),
        (["true", ""], 2, "a command is empty"),
        (["true", "true", "true", "-p", "true", "-p", "true"], 2, "--prepare is given 2 times for 3 commands"),
        (["true", "--prepare", "exit 4", "--runs", "6"], 1, "exited with status 4"),
    ],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    arguments = [*arguments, "--share-host"]
    assert main([*arguments, "--results", str(tmp_path)]) == code
    assert message in capsys.readouterr().err


def test_interrupted_timing_keeps_its_runs(tmp_path: Path) -> None:
    process = start(tmp_path, "time", "sleep 0.01", "--width", "0.001%")
    while not any(len(path.read_text().splitlines()) > 6 for path in tmp_path.glob("results/*/*/values.jsonl")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished runs are kept in results/time/" in stderr
    folder = single_folder(tmp_path)
    assert [trial.end for trial in trials(folder)] == ["done"] * len(trials(folder))
    assert "sleep 0.01" in loadstone(tmp_path, "show", folder.path).stdout


def test_equal_commands_have_distinct_names() -> None:
    commands = create_commands(["a", "a", "b"], ["reset"], ["x"])
    assert [command.name for command in commands] == ["x", "a", "b"]
    assert {command.prepare for command in commands} == {"reset"}
    assert [command.name for command in create_commands(["a", "a"], [], [])] == ["a #1", "a #2"]


def test_width_is_of_the_ratio() -> None:
    timing = Timing.__new__(Timing)
    timing.commands = [Timed("a", "a"), Timed("b", "b")]
    drifting = {number: 100.0 * number for number in range(1, 7)}
    timing.figures = {"a": drifting, "b": {number: value * 1.1 for number, value in drifting.items()}}
    # The machine became slower; the ratio did not change.
    assert timing.widest() < 0.001
    timing.commands = [Timed("a", "a")]
    assert timing.widest() > 0.5


def test_outliers_are_far_from_the_median() -> None:
    assert find_outliers([1.0, 1.1, 0.9, 1.0, 1.05, 9.0]) == [9.0]
    assert find_outliers([1.0, 1.1, 0.9, 1.0, 1.05]) == []
    assert find_outliers([1.0, 1.0, 1.0, 5.0]) == []
    assert find_outliers([]) == []


def test_rank_of_the_median_is_exact() -> None:
    for n in (1, 5, 6, 7, 30, 101):
        for level in (0.5, 0.9, 0.95):
            rank, _ = median_rank(n, level)
            assert rank == max(next(k for k in range(n + 1) if binomial_tail(k, n) >= (1 - level) / 2), 1)
    assert median_rank(5000)[0] == 2431
