"""No result is lost or duplicated, however a run or its parts end: kills, Ctrl-C, a full disk, damage.

Each occurs at a random instant, once here and fifty times in `make soak` (LOADSTONE_CRASHES=50).
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_support import command, engines, environment, experiment, kill, loadstone, outline, rows, single_folder, start
from loadstone.judge.judge import judge_results
from loadstone.results.folder import ATTEMPT_START, PILOT_TRIALS, VALUES, Folder, find_folders
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.systems.base.running_system import RunningSystem
from systems_support import free_port, systems, temporary_root

pytestmark = pytest.mark.usefixtures("engine_variable")

ROUNDS = range(int(os.environ.get("LOADSTONE_CRASHES", "1")))
TINY = """
systems: {first: {store: lmdb}, second: {store: lmdb}}
workload:
  file: %s/workloads/workloada
  properties: {recordcount: 100, fieldcount: 1}
measure: {warmup: 0, duration: 100ms}
repeats: 3
"""
ON_REDIS = """
systems:
  first: &redis {store: redis, start: {system: redis, settings: {port: %PORT%}}}
  second: *redis
workload:
  file: %s/workloads/workloada
  properties: {recordcount: 100, fieldcount: 1}
measure: {warmup: 0, duration: 200ms, settle: false}
repeats: 3
"""
PILOTED = TINY.replace("warmup: 0, ", "")
# Seconds until Python has started, and the maximum duration of an undisturbed run of TINY from then on, within which
# the random instants lie.
STARTED_SECONDS, RUN_SECONDS = 0.7, 1.6
# Fewer bytes would not hold folder.json; more bytes would hold all results.
TMPFS_BYTES = (64 << 10, 400 << 10)

Outline = list[tuple[str, dict[str, Scalar], int, str]]


@pytest.fixture(scope="module")
def reference_outline(tmp_path_factory: pytest.TempPathFactory, module_engine_variable: None) -> Outline:
    """The trials of an undisturbed run."""
    home = tmp_path_factory.mktemp("undisturbed")
    loadstone(home, "run", experiment(home, TINY), "--no-report")
    return outline(single_folder(home))


def resume(home: Path, reference_outline: Outline) -> None:
    """Resumes until the run is complete, and checks that its results equal the results of an undisturbed run."""
    file = home / "small.yaml"
    # The kill may have happened before there was anything to resume.
    again = ["--resume"] if find_folders(home / "results") else []
    loadstone(home, "run", file, "--no-report", *again)
    folder = single_folder(home)
    assert outline(folder) == reference_outline
    complete(folder, {name for name, *_ in reference_outline})
    assert list((home / "data").iterdir()) == []


def complete(folder: Folder, names: set[str]) -> None:
    """Every trial has one result, every attempt a line and files, and `retried` names trials with failed attempts."""
    lines = rows(folder)
    pilots = [attempt.to_json() for attempt in folder.read_attempts(PILOT_TRIALS)[0]]
    done = [line["trial"] for line in lines if line["end"] == "done"]
    assert sorted(done) == sorted(names), "a trial has no result, or two"
    assert folder.load_results().warnings == ()
    attempts = [line["trial"] + (f".{line['attempt']}" if line["attempt"] > 1 else "") for line in lines + pilots]
    assert len(attempts) == len(set(attempts)), "an attempt has two lines"
    assert {attempt.name for attempt in (folder.path / "trials").iterdir()} == set(attempts)
    failed = {line["trial"] for line in lines if line["end"] in ("failed", "lost")}
    findings = judge_results(folder.load_results()).trials
    assert {
        name for name, finding in findings.items() if any(attempt.check == "retried" for attempt in finding)
    } == failed


def instant(seed: int) -> float:
    """A random instant, in seconds after the start."""
    return STARTED_SECONDS + random.Random(seed).random() * RUN_SECONDS


def have_engines_ended(home: Path) -> bool:
    """Whether every engine has exited within the time of its lease."""
    for _ in range(200):
        if not engines(home):
            return True
        time.sleep(0.1)
    return False


def list_marked(home: Path) -> Iterator[tuple[str, int]]:
    """The attempts marked as begun. An attempt whose line has just been written may still have its mark."""
    for mark in home.glob(f"results/*/*/trials/*/{ATTEMPT_START}"):
        line = TrialResult.from_json(json.loads(mark.read_bytes())["line"])
        yield line.trial, line.attempt


def list_recorded(home: Path) -> list[TrialResult]:
    """All attempts with a line."""
    folders = find_folders(home / "results")
    return [
        attempt for folder in folders for table in (VALUES, PILOT_TRIALS) for attempt in folder.read_attempts(table)[0]
    ]


@pytest.mark.parametrize("round_", ROUNDS)
@pytest.mark.parametrize("text", [TINY, PILOTED], ids=["no pilot", "pilot"])
def test_the_lab_is_killed(tmp_path: Path, reference_outline: Outline, text: str, round_: int) -> None:
    process = start(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    time.sleep(instant(round_))
    process.kill()
    process.communicate()
    assert have_engines_ended(tmp_path), "an engine outlived its lab"
    started = len({*list_marked(tmp_path)} - {(trial.trial, trial.attempt) for trial in list_recorded(tmp_path)})
    resume(tmp_path, reference_outline)
    ends = [trial.end for trial in list_recorded(tmp_path)]
    assert (ends.count("interrupted"), set(ends) - {"interrupted"}) == (started, {"done"})


@pytest.mark.parametrize("round_", ROUNDS)
def test_an_engine_is_killed(tmp_path: Path, reference_outline: Outline, round_: int) -> None:
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    time.sleep(instant(1000 + round_))
    killed = False
    # Without an engine, the run must have ended.
    while process.poll() is None and not killed:
        for pid in engines(tmp_path)[:1]:
            killed = kill(pid)
    _, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr
    resume(tmp_path, reference_outline)


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_lab_is_interrupted(tmp_path: Path, reference_outline: Outline, round_: int) -> None:
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    # An earlier signal could arrive before Python has started the lab's code.
    time.sleep(instant(4000 + round_) + 0.3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    # The signal kills the process directly if Python is already exiting.
    assert process.returncode in (0, 130, -signal.SIGINT), stderr
    assert "Traceback" not in stderr
    assert engines(tmp_path) == []
    resume(tmp_path, reference_outline)
    assert {line["end"] for line in rows(single_folder(tmp_path))} <= {"done", "interrupted"}


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state directory of a Redis that is stopped at the end."""
    with temporary_root() as root:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(root))
        yield root
        systems(root, "down", "redis")


@pytest.mark.parametrize("round_", ROUNDS)
def test_a_server_is_killed(tmp_path: Path, redis: Path, round_: int) -> None:
    file = experiment(tmp_path, ON_REDIS.replace("%PORT%", str(free_port())))
    process = start(tmp_path, "run", file, "--no-report")
    running = RunningSystem("redis", redis)
    while process.poll() is None and not running.running_processes():
        time.sleep(0.01)
    time.sleep(random.Random(5000 + round_).random() * 3)
    for server in running.running_processes():
        kill(server.pid)
    _, stderr = process.communicate(timeout=120)
    assert "Traceback" not in stderr
    if process.returncode:
        loadstone(tmp_path, "run", file, "--no-report", "--resume", "--retry-failed")
    folder = single_folder(tmp_path)
    names = {line["trial"] for line in rows(folder)}
    assert len(names) == 6
    complete(folder, names)
    assert running.running_processes() == []


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_last_line_of_the_table_is_damaged(tmp_path: Path, reference_outline: Outline, round_: int) -> None:
    draw = random.Random(2000 + round_)
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    time.sleep(instant(2000 + round_) + 0.5)
    process.kill()
    process.communicate()
    assert have_engines_ended(tmp_path)
    for folder in find_folders(tmp_path / "results"):
        table = folder.path / "values.jsonl"
        data = bytearray(table.read_bytes()) if table.exists() else bytearray()
        if not data:
            continue
        at = draw.randrange(data.rstrip(b"\n").rfind(b"\n") + 1, len(data))
        match draw.choice(["torn", "overwritten", "half a line more"]):
            case "torn":
                del data[at:]
            case "overwritten":
                data[at] = 0xFF
            case _:
                data += b'{"trial":"half'
        table.write_bytes(data)
    resume(tmp_path, reference_outline)


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_disk_is_full(tmp_path: Path, reference_outline: Outline, round_: int) -> None:
    """The results are on a small file system, which is enlarged before the run is resumed."""
    size = random.Random(3000 + round_).randrange(*TMPFS_BYTES, 4096)
    first = shlex.join(command("run", experiment(tmp_path, TINY), "--no-report"))
    again = shlex.join(command("run", "small.yaml", "--no-report", "--resume"))
    (tmp_path / "results").mkdir()
    script = f"""
        mount -t tmpfs -o size={size} none results || exit 77
        {first} 2> first; echo $? > status
        mount -o remount,size=64m results
        if [ -e results/small/*/folder.json ]; then {again}; else {first}; fi || exit 1
        cp -r results kept
    """
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this machine does not allow mounts in an unprivileged namespace")
    assert done.returncode == 0, done.stderr
    first_output = (tmp_path / "first").read_text()
    assert "Traceback" not in first_output
    if (tmp_path / "status").read_text().strip() != "0":
        assert "No space left on device" in first_output
    (tmp_path / "results").rmdir()
    (tmp_path / "kept").rename(tmp_path / "results")
    folder = single_folder(tmp_path)
    assert outline(folder) == reference_outline
    assert {line["end"] for line in rows(folder)} <= {"done", "interrupted"}
    complete(folder, {name for name, *_ in reference_outline})
