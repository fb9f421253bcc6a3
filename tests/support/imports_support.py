"""Shared by the tests of importers: paths of fixtures, and short access to imported runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.importers.read import Imported, read_file
from loadstone.results.trial_result import Scalar

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
YCSB = Path(__file__).parents[1] / "fixtures" / "ycsb"


def read_single(path: Path, **facts: Scalar) -> Imported:
    """The only run of a file."""
    runs = read_file(path, facts)
    assert len(runs) == 1, [run.result.trial for run in runs]
    return runs[0]


def figures(imported: Imported, *metrics: str) -> dict[str, tuple[float, str, int]]:
    """Figures as value, unit and n; all figures unless names are passed."""
    values = imported.result.values
    chosen = metrics or tuple(values)
    return {metric: (values[metric].value, values[metric].unit, values[metric].n) for metric in chosen}


def write_file(folder: Path, text: str | bytes, name: str = "bench.log") -> Path:
    """Writes a test's file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path, facts: Mapping[str, Scalar] | None = None) -> str:
    """The message that refuses a file, as the user sees it."""
    with pytest.raises(LoadstoneError) as caught:
        read_file(path, facts or {})
    return str(caught.value)
