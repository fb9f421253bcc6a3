"""Valid experiments whose hooks, files or engines misbehave end with a clear error, or run nevertheless."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, start, trials
from loadstone.runner import hooks

pytestmark = pytest.mark.usefixtures("engine_variable")

HEAD = """
systems: {first: {store: lmdb}}
workload:
  file: %s/workloads/workloada
  properties: {recordcount: 100, fieldcount: 1}
measure: {warmup: 0, duration: 100ms}
repeats: 2
"""
TORN = r"head -c 100000 /dev/zero; printf '\377\376 the end\303'; exit 3"


def run(home: Path, more: str, *arguments: str, code: int = 0, head: str = HEAD) -> str:
    """Runs HEAD with additional keys; returns its output."""
    file = experiment(home, head + more)
    return loadstone(home, "run", file, "--no-report", *arguments, code=code).stderr


def test_a_hook_may_print_megabytes_of_binary_data(tmp_path: Path) -> None:
    with pytest.raises(hooks.HookError, match="the end\ufffd") as caught:
        hooks.run([TORN], "before", {}, tmp_path / "hooks.log", 10)
    assert len(str(caught.value.hint)) < 2 * hooks.SHOWN_CHARS
    hooks.run([TORN.replace("exit 3", "true")], "before", {}, tmp_path / "hooks.log", 10)


def test_unusable_hook_fails_only_its_trial(tmp_path: Path) -> None:
    with pytest.raises(hooks.HookError, match=r"cannot be run: .*Argument list too long"):
        hooks.run(["true"], "before", {"x": "x" * 200_000}, tmp_path / "hooks.log", 10)


@pytest.mark.parametrize("text", [r"a\0b", r"\ud800"])
def test_a_nul_character_is_a_mistake(tmp_path: Path, text: str) -> None:
    for more in (f'hooks: {{before: ["{text}"]}}', f'vary: {{x: ["{text}"]}}'):
        assert "must not contain NUL or a lone surrogate" in run(tmp_path, more, code=2)


def test_hooks_after_failures_run_without_hiding_the_error(tmp_path: Path) -> None:
    stderr = run(tmp_path, 'hooks: {before: ["exit 3"], after: ["echo cleaned >> cleaned; exit 4"]}', code=1)
    assert (tmp_path / "cleaned").read_text() == "cleaned\n" * 2
    assert stderr.count("the hook `exit 3` (before) failed with exit status 3") == 2
    assert "exit 4" not in stderr


def test_failing_hook_does_not_swallow_ctrl_c(tmp_path: Path) -> None:
    text = HEAD.replace("100ms", "20s") + 'hooks: {before: ["touch begun"], after: ["exit 3"]}'
    process = start(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    while not (tmp_path / "begun").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert trials(single_folder(tmp_path)) == []


def test_hook_killed_by_ctrl_c_preserves_it(tmp_path: Path) -> None:
    text = HEAD.replace("100ms", "20s") + 'hooks: {before: ["kill -INT $PPID"]}'
    process = start(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    _, stderr = process.communicate(timeout=15)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr


def test_interrupted_run_waits_only_briefly_for_a_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loadstone.experiment.file import load_experiment
    from loadstone.experiment.plan.plan import plan_experiment
    from loadstone.fleet.local import Local
    from loadstone.runner import trial
    from loadstone.runner.datasets import DataSpaces
    from loadstone.runner.progress import PlainLines
    from loadstone.runner.server_pool import RunServers

    monkeypatch.setattr(trial, "LEAVING_SECONDS", 0.1)
    loaded = load_experiment(experiment(tmp_path, HEAD + 'hooks: {after: ["sleep 60"]}'), None, [])
    (planned, *_), *_ = plan_experiment(loaded.experiment).plan_blocks()
    with DataSpaces("test") as spaces:
        text = PlainLines.__new__(PlainLines)
        conductor = trial.Conductor(loaded.experiment, spaces, text, Local(), RunServers())
        start_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt), conductor._run_hooks(planned, tmp_path, tmp_path):
            raise KeyboardInterrupt
        assert time.monotonic() - start_s < 30


def test_a_workload_file_need_not_set_an_end(tmp_path: Path) -> None:
    from loadstone.experiment.file import load_experiment
    from loadstone.experiment.plan.plan import plan_experiment
    from loadstone.runner.rehearsal import preflight
    from loadstone.workloads.ycsb import run_spec

    (tmp_path / "endless").write_text("recordcount=100\nupdateproportion=1\nreadproportion=0\n")
    loaded = load_experiment(experiment(tmp_path, HEAD.replace("%s/workloads/workloada", "endless")), None, [])
    planned = plan_experiment(loaded.experiment)
    preflight(planned)
    assert run_spec(planned.variants[0], loaded.experiment.measure, tmp_path, 1)["until"] == {"seconds": 0.1}


def test_overdue_last_operation_does_not_change_the_rate(tmp_path: Path) -> None:
    run(tmp_path, "rate: 0.5")
    results = trials(single_folder(tmp_path))
    assert [(result.value("operations"), result.value("runtime")) for result in results] == [(1, 1e8)] * 2
    assert [result.value("throughput") for result in results] == [10.0] * 2


def test_a_changing_rate_is_an_open_loop(tmp_path: Path) -> None:
    run(tmp_path, "", head=HEAD.replace("fieldcount: 1", 'fieldcount: 1, rate.ramp: "100:1000:1"'))
    (first, _) = trials(single_folder(tmp_path))
    assert first.loop == "open"
    assert first.value("all.service.mean") is not None


def test_hook_may_hide_the_directory_for_any_seed(tmp_path: Path) -> None:
    # Previous contents are hidden, as by a mount over the directory.
    run(tmp_path, 'load: {reuse: copy}\nseed: 99999999999999999999999\nhooks: {before: ["rm -rf data/*"]}')
    assert {trial.end for trial in trials(single_folder(tmp_path))} == {"done"}


def test_trials_of_another_run_are_named(tmp_path: Path) -> None:
    run(tmp_path, "")
    folder = single_folder(tmp_path)
    assert folder.load_results().warnings == ()
    lines = (folder.path / "values.jsonl").read_text().replace('"first"', '"second"')
    (folder.path / "values.jsonl").write_text(lines)
    (warning,) = folder.load_results().warnings
    assert warning == "plan.jsonl lacks 2 trials, such as 0000-first-r1, which may belong to another run"
