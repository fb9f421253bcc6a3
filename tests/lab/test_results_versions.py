"""Every past version of result folders can be read; new folders match the schema."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab_support import ROOT, experiment, loadstone, single_folder
from loadstone.results import lines
from loadstone.results.folder import VERSION, Folder
from loadstone.results.result_set import Question
from loadstone.results.trial_result import SERIES_OPTIONAL, Series
from loadstone.statistics.percentile import BOUNDS

SCHEMA = json.loads((ROOT / "docs/reference/schemas/results.json").read_text())
FIXTURES = ROOT / "tests/fixtures/results"


def validate(name: str, instance: Any) -> None:
    """Raises if an instance does not match a definition of the schema."""
    jsonschema.validate(instance, {**SCHEMA, "$ref": f"#/$defs/{name}"})


def check(folder: Path) -> None:
    """Validates all files of a folder against the schema."""
    validate("folder", json.loads((folder / "folder.json").read_text()))
    for name, kind in (("plan.jsonl", "block"), ("values.jsonl", "trial")):
        result = lines.read_lines(folder / name)
        assert (bool(result.documents), result.damaged) == (True, [])
        for document in result.documents:
            validate(kind, document)
    series = list(folder.glob("trials/*/series.json"))
    assert series
    for file in series:
        validate("series", json.loads(file.read_text()))


def test_the_schema_names_what_the_code_names() -> None:
    parts = SCHEMA["$defs"]
    assert parts["folder"]["properties"]["results"]["const"] == VERSION
    value = parts["trial"]["properties"]["values"]["items"]
    assert value["properties"]["bound"]["enum"] == list(BOUNDS)
    columns = [field.name for field in fields(Series)]
    assert list(parts["series"]["properties"]) == columns
    assert {*parts["series"]["required"]} == {*columns} - SERIES_OPTIONAL
    questions = {field.name for field in fields(Question)}
    assert set(parts["folder"]["properties"]["question"]["properties"]) == questions


@pytest.mark.usefixtures("engine_variable")
def test_what_a_run_writes_matches_the_schema(tmp_path: Path) -> None:
    arguments = ("--no-report", "--set", "repeats=2", "--set", "measure.duration=100ms")
    loadstone(tmp_path, "run", experiment(tmp_path), *arguments)
    check(single_folder(tmp_path).path)


def test_there_is_a_folder_of_every_version() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir()) == [f"v{version}" for version in range(1, VERSION + 1)]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_folders_of_every_version_are_read_and_reported(tmp_path: Path, version: int) -> None:
    shutil.copytree(FIXTURES / f"v{version}", tmp_path / "results/old/then")
    results = Folder(tmp_path / "results/old/then").load_results()
    expected = json.loads((FIXTURES / f"v{version}" / "expected.json").read_text())
    assert [
        {
            "trial": trial.trial,
            "end": trial.end,
            "throughput": trial.value("throughput"),
            "p99": trial.value("read.p99"),
        }
        for trial in results.trials
    ] == expected
    assert results.warnings == ()
    assert results.interleaved
    assert all(results.series(trial.trial) for trial in results.trials)
    loadstone(tmp_path, "show", "old")
    loadstone(tmp_path, "report", "old")
    assert (tmp_path / "results/old/then/report.html").exists()


def test_the_schema_refuses_what_is_wrong() -> None:
    (line, *_) = lines.read_lines(FIXTURES / "v1/values.jsonl").documents
    validate("trial", line)
    for broken in ({**line, "end": "perhaps"}, {**line, "config": {"a": []}}, {**line, "values": [{"metric": "x"}]}):
        with pytest.raises(jsonschema.ValidationError):
            validate("trial", broken)
