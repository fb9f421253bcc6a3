"""Shared by the tests of importers: where the fixtures are, and short ways to what was read from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.importers.read import Imported, read_file
from loadstone.results.trial_result import Scalar

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
YCSB = Path(__file__).parents[1] / "fixtures" / "ycsb"


def one(path: Path, **facts: Scalar) -> Imported:
    """The only run of a file."""
    found = read_file(path, facts)
    assert len(found) == 1, [each.result.trial for each in found]
    return found[0]


def figures(imported: Imported, *metrics: str) -> dict[str, tuple[float, str, int]]:
    """Figures as value, unit and n; all of them unless some are named."""
    values = imported.result.values
    chosen = metrics or tuple(values)
    return {metric: (values[metric].value, values[metric].unit, values[metric].n) for metric in chosen}


def written(folder: Path, text: str | bytes, name: str = "bench.log") -> Path:
    """A file of a test's own."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path, facts: Mapping[str, Scalar] | None = None) -> str:
    """What reading a file ends with, as the user sees it."""
    with pytest.raises(LoadstoneError) as caught:
        read_file(path, facts or {})
    return str(caught.value)
