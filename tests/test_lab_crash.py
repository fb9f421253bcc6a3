"""Nothing is lost and nothing is double, whatever ends a run: kills, a full disk, a damaged table.

Each at random instants, three times here and fifty in `make soak` (LOADSTONE_CRASHES=50).
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from lab_support import command, engines, environment, experiment, kill, loadstone, only_folder, outline, rows, start
from loadstone.results.folder import find
from loadstone.results.trial_result import Scalar

pytestmark = pytest.mark.usefixtures("chosen")

ROUNDS = range(int(os.environ.get("LOADSTONE_CRASHES", "3")))
TINY = """
systems: {first: {store: lmdb}, second: {store: lmdb}}
workload:
  file: %s/workloads/workloada
  properties: {recordcount: 100, fieldcount: 1}
measure: {warmup: 0, duration: 100ms}
repeats: 3
"""
# What an undisturbed run of TINY takes at most, after Python has started; instants are drawn from it.
STARTED_SECONDS, RUN_SECONDS = 0.7, 1.6
# Fewer would not hold folder.json, more than all of the results.
TMPFS_BYTES = (64 << 10, 400 << 10)

Outline = list[tuple[str, dict[str, Scalar], int, str]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, module_chosen: None) -> Outline:
    """The trials of a run that nothing disturbed."""
    home = tmp_path_factory.mktemp("undisturbed")
    loadstone(home, "run", experiment(home, TINY), "--no-report")
    return outline(only_folder(home))


def resume(home: Path, undisturbed: Outline) -> None:
    """Goes on until the run is complete, and looks at what it left: as though nothing had happened."""
    file = home / "small.yaml"
    # Whoever killed the lab may have done so before there was anything to go on with.
    again = ["--resume"] if find(home / "results") else []
    loadstone(home, "run", file, "--no-report", *again)
    folder = only_folder(home)
    assert outline(folder) == undisturbed
    done = [line["trial"] for line in rows(folder) if line["end"] == "done"]
    assert sorted(done) == sorted({name for name, *_ in undisturbed}), "a trial has two results"
    assert folder.load().warnings == ()
    # Every attempt has its files, those that failed as well.
    attempts = {line["trial"] + (f".{line['attempt']}" if line["attempt"] > 1 else "") for line in rows(folder)}
    assert {each.name for each in (folder.path / "trials").iterdir()} == attempts
    assert list((home / "data").iterdir()) == []


def instant(seed: int) -> float:
    """Seconds after the start."""
    return STARTED_SECONDS + random.Random(seed).random() * RUN_SECONDS


def gone(home: Path) -> bool:
    """Whether every engine has ended, within the time that its lease gives it."""
    for _ in range(200):
        if not engines(home):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_lab_is_killed(tmp_path: Path, undisturbed: Outline, round_: int) -> None:
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    time.sleep(instant(round_))
    process.kill()
    process.communicate()
    assert gone(tmp_path), "an engine outlived its lab"
    resume(tmp_path, undisturbed)


@pytest.mark.parametrize("round_", ROUNDS)
def test_an_engine_is_killed(tmp_path: Path, undisturbed: Outline, round_: int) -> None:
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    time.sleep(instant(1000 + round_))
    killed = False
    # The next engine that is seen; there is none only if the run is over.
    while process.poll() is None and not killed:
        for pid in engines(tmp_path)[:1]:
            killed = kill(pid)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    resume(tmp_path, undisturbed)


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_last_line_of_the_table_is_damaged(tmp_path: Path, undisturbed: Outline, round_: int) -> None:
    draw = random.Random(2000 + round_)
    process = start(tmp_path, "run", experiment(tmp_path, TINY), "--no-report")
    time.sleep(instant(2000 + round_) + 0.5)
    process.kill()
    process.communicate()
    assert gone(tmp_path)
    for folder in find(tmp_path / "results"):
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
    resume(tmp_path, undisturbed)


@pytest.mark.parametrize("round_", ROUNDS)
def test_the_disk_is_full(tmp_path: Path, undisturbed: Outline, round_: int) -> None:
    """A small file system of its own for the results, which is then given more room."""
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
        pytest.skip("this machine lets nobody mount a file system in a namespace of their own")
    assert done.returncode == 0, done.stderr
    first_said = (tmp_path / "first").read_text()
    assert "Traceback" not in first_said
    if (tmp_path / "status").read_text().strip() != "0":
        assert "No space left on device" in first_said
    (tmp_path / "results").rmdir()
    (tmp_path / "kept").rename(tmp_path / "results")
    folder = only_folder(tmp_path)
    assert outline(folder) == undisturbed
    assert len(rows(folder)) == len(undisturbed)
