"""The experiments printed by `loadstone example`: each is listed in the guide, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_server import run_command
from lab_support import ROOT, environment, loadstone
from loadstone.commands.example import FOLDER
from loadstone.experiment.file import load_experiment
from systems_support import free_port, temporary_root

EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
GUIDE = (ROOT / "docs/guides/five-questions.md").read_text()
# The test checks that a file runs, not its measurements. The wheel's test runs the first example.
RUNS = {
    "durability-cost": ["--scale", "quick", "--set", "repeats=1", "--set", "measure.warmup=0"],
    "latency-at-rate": ["--scale", "quick", "--set", "repeats=1", "--set", "measure.warmup=0"],
    "redis-clients": ["--scale", "quick", "--set", "find.to=2", "--set", "systems.redis.start.settings.port={port}"],
    "two-commands": ["--set", "repeats=1"],
}


def test_guide_lists_every_example() -> None:
    assert sorted([*RUNS, "embedded-stores"]) == EXAMPLES
    for name in EXAMPLES:
        assert f"`{name}`" in GUIDE


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_free_of_warnings(name: str) -> None:
    loaded = load_experiment(FOLDER / f"{name}.yaml")
    assert loaded.warnings == ()
    assert loaded.experiment.question


@pytest.mark.parametrize("name", RUNS)
def test_example_ends_with_report(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_root() as root:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(root))
        (tmp_path / "my.yaml").write_text(loadstone(tmp_path, "example", name).stdout)
        arguments = [word.format(port=free_port()) for word in RUNS[name]]
        # A search has no answer if the machine is too slow for enough operations.
        codes = {0, 1} if name == "redis-clients" else {0}
        done = run_command(["run", "my.yaml", *arguments], tmp_path, environment(tmp_path), 300)
        assert done.returncode in codes, done.stderr
        assert "differ in pace" not in done.stdout, "the arrival is compared"
    (report,) = tmp_path.glob("results/my/*/report.html")
    assert load_experiment(FOLDER / f"{name}.yaml").experiment.question in report.read_text()
    assert "✗" not in done.stderr
