"""Experiment files for tests: writes and loads them, and returns messages as text."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from loadstone.experiment.file import ExperimentError, Loaded, load_experiment

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
PAGE = (ROOT / "docs/reference/experiment-file.md").read_text()
# The examples of the reference page; the second contains most of the keys.
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
FIXTURES = ROOT / "tests/fixtures/experiments"
# If this variable is set, snapshots are written instead of compared: review the changes before you commit them.
WRITE = "LOADSTONE_WRITE_SNAPSHOTS"
OPTIONS = "# --"


def experiment(directory: Path, text: str) -> Path:
    """A file with this text; WORKLOADS is replaced by the repository's directory of workloads."""
    path = directory / "experiment.yaml"
    path.write_text(text.replace("WORKLOADS", str(WORKLOADS)))
    return path


def load_text(directory: Path, text: str, *settings: str, scale: str | None = None) -> Loaded:
    """The experiment with this text."""
    return load_experiment(experiment(directory, text), scale, settings)


def mistakes(directory: Path, text: str, *settings: str) -> list[str]:
    """The messages about this text, without places and hints."""
    try:
        load_text(directory, text, *settings)
    except ExperimentError as error:
        return [mistake.message for mistake in error.mistakes]
    return []


def warnings(directory: Path, text: str) -> list[str]:
    """The warnings about this text, without places and hints."""
    return [warning.message for warning in load_text(directory, text).warnings]


def message_of(path: Path) -> str:
    """The messages about a file, loaded with the options of its first line: `# --scale small --set clients=2`."""
    first = path.read_bytes().decode(errors="replace").partition("\n")[0]
    options = shlex.split(first[2:]) if first.startswith(OPTIONS) else []
    scale, settings = None, []
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "--scale":
            scale = value
        else:
            settings.append(value)
    try:
        load_experiment(path, scale, settings)
    except ExperimentError as error:
        return f"{error}\n"
    return ""


def snapshot(path: Path, text: str) -> str:
    """The text of a snapshot file, which is first written if WRITE is set."""
    if WRITE in os.environ:
        path.write_text(text)
    return path.read_text()
