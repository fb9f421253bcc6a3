"""Small experiments, run by the command as users run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from command_server import LOADSTONE, Done, run_command
from loadstone.results.folder import Folder, find_folders
from loadstone.results.trial_result import TrialResult

ROOT = Path(__file__).parents[2]

# Two variants, three repeats, a fifth of a second each.
SMALL = """
question: Do two copies of one store differ?
systems: {first: {store: lmdb}, second: {store: lmdb}}
workload:
  file: %s/workloads/workloada
  properties: {recordcount: 200, fieldcount: 2}
clients: 2
measure: {warmup: 0, duration: 200ms}
repeats: 3
"""


def experiment(home: Path, text: str = SMALL, name: str = "small.yaml") -> Path:
    """Writes an experiment file."""
    path = home / name
    path.write_text(text % ROOT if "%s" in text else text)
    return path


def command(*arguments: str | Path) -> list[str]:
    """A command line of `loadstone`."""
    return [*LOADSTONE, *map(str, arguments)]


def environment(home: Path) -> dict[str, str]:
    """The environment of a command: data below `home`, and plain output."""
    (home / "data").mkdir(exist_ok=True)
    # Tests run concurrently; their measurements do not matter.
    shared = {"LOADSTONE_SHARE_HOST": "1"}
    return {**os.environ, **shared, "TMPDIR": str(home / "data"), "NO_COLOR": "1", "COLUMNS": "200"}


def loadstone(home: Path, *arguments: str | Path, code: int = 0, timeout: float = 600) -> Done:
    """Runs a command that must exit with this status. After `timeout` seconds it counts as hanging and is killed."""
    done = run_command(arguments, home, environment(home), timeout)
    assert done.returncode == code, f"{arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def start(home: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """Starts a command without waiting for it."""
    pipe = subprocess.PIPE
    text, variables = command(*arguments), environment(home)
    return subprocess.Popen(
        text, cwd=home, env=variables, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    )


def single_folder(home: Path) -> Folder:
    """The only result folder."""
    (folder,) = find_folders(home / "results")
    return folder


def trials(folder: Folder) -> list[TrialResult]:
    """The trials of a folder."""
    return list(folder.load_results().trials)


def outline(folder: Folder) -> list[tuple[str, dict[str, Any], int, str]]:
    """The data about a folder's trials that do not depend on the machine's speed."""
    return [(trial.trial, dict(trial.config), trial.repeat, trial.end) for trial in trials(folder)]


def rows(folder: Folder) -> list[dict[str, Any]]:
    """The lines of values.jsonl."""
    return [json.loads(line) for line in (folder.path / "values.jsonl").read_text().splitlines()]


def engines(home: Path) -> list[int]:
    """The process ids of engines whose working directory is `home`."""
    results = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text().strip()
                if name.startswith("loadstone-engin") and (entry / "cwd").resolve() == home.resolve():
                    results.append(int(entry.name))
            except OSError:
                continue
    return results


def kill(pid: int) -> bool:
    """Kills a process; returns False if it had already exited."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_running(pid: int) -> bool:
    """Whether this process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
