"""Shared by the tests of importers: paths of fixtures, and short access to imported runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.importers.read import Imported, detect_format, read_file
from loadstone.importers.source import text_of
from loadstone.results.trial_result import Scalar

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
YCSB = Path(__file__).parents[1] / "fixtures" / "ycsb"
OWN = [path for path in FIXTURES.iterdir() if ".facts." not in path.name and path.name != "README.md"]
OUTPUTS = sorted([*OWN, *(YCSB / name for name in ("run_a.out", "run_f.out", "json.txt", "hdr_READ.hdr"))])
# Neither a table nor a histogram log has an end mark: a missing row cannot be detected.
ENDLESS = {"csv", "hlog"}
# Outputs whose truncation cannot be detected: go-ycsb without TOTAL or intervals, YCSB with read-modify-writes (the
# parts alone make up the total), and cassandra-stress 2.1, which prints no total of its rows.
WITHOUT_END = {"go-ycsb-runs.md", "go-ycsb-table.txt", "run_f.out", "cassandra-stress-2.1.txt"}
JSON_FORMATS = {"ycsb-json", "fio", "latte", "hyperfine"}
for_every_output = pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)


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


@cache
def read_whole(path: Path) -> list[Imported]:
    """The runs of an undamaged file."""
    return read_file(path, {})


@cache
def format_of(path: Path) -> str:
    """The name of a file's format."""
    return detect_format(path, text_of(path)).NAME


def try_read(path: Path, facts: Mapping[str, Scalar] | None = None) -> list[Imported] | None:
    """The runs of a damaged file, or None for a refusal with a message and a hint."""
    try:
        return read_file(path, facts or {})
    except LoadstoneError as error:
        refusal = error
    assert refusal.hint
    assert "\n" not in refusal.args[0]
    return None


def is_json(path: Path) -> bool:
    return format_of(path) in JSON_FORMATS or path.suffix == ".json"
