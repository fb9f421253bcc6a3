"""The notebooks of the docs run, their figures equal the command line's, and their outputs are current.

`python tests/report/test_notebooks.py` executes them and writes their outputs.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient

from lab_support import ROOT
from lab_support import loadstone as command

# nbformat's functions have no types.
nbformat: Any = importlib.import_module("nbformat")
NOTEBOOKS = ROOT / "docs/notebooks"
# The columns of an export whose names differ from the dimension's.
EXPORTED = {"clients": "clients_"}
# A cell that prints values for a comparison in a test.
VALUES = {
    "first-look": "print(__import__('json').dumps([headline.to_dict('records'), comparisons.to_dict('records')]))",
    "cassandra-scale": "print(__import__('json').dumps([[list(key), table.reset_index().to_dict('records')]"
    " for key, table in tables.items()]))",
}


def execute(name: str, *more: str) -> Any:
    """Executes a notebook with further cells at its end; returns it with the new outputs."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in more]
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    return notebook


def texts(notebook: Any, cells: int) -> list[list[str]]:
    """The text of each cell's outputs, without charts and the addresses of objects."""
    outputs: list[list[str]] = []
    for cell in notebook.cells[:cells]:
        every = cell.get("outputs", ())
        plain = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in every]
        outputs.append([re.sub(r"0x[0-9a-f]+", "0x", text) for text in plain if not text.startswith("alt.")])
    return outputs


@pytest.fixture(scope="module", params=list(VALUES))
def notebook(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param, execute(request.param, VALUES[request.param])


def test_outputs_of_notebooks_are_current(notebook: tuple[str, Any]) -> None:
    name, executed = notebook
    saved = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    cells = len(saved.cells)
    assert texts(saved, cells) == texts(executed, cells), "python tests/report/test_notebooks.py"
    outputs = [output for cell in saved.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs), "charts are in the page"


def test_notebook_figures_equal_the_command_lines(notebook: tuple[str, Any], tmp_path: Path) -> None:
    name, executed = notebook
    values = json.loads(executed.cells[-1].outputs[0].text)
    archive = NOTEBOOKS / ("quickstart.zip" if name == "first-look" else "cassandra-scale.zip")
    document = json.loads(command(tmp_path, "show", archive, "--json").stdout)
    assert document["answer"] in "".join(text for outputs in texts(executed, len(executed.cells)) for text in outputs)
    cells = {(*map(str, cell["variant"].values()), cell["metric"]): cell for cell in document["cells"]}
    if name == "first-look":
        headline, comparisons = values
        names = ("value", "low", "high", "n", "unit")
        assert len(headline) == len(cells) == 12
        for row in headline:
            cell = cells[row["system"], row["workload"], row["metric"]]
            assert [row[key] for key in names] == [cell[key] for key in names]
        columns = ("metric", "ratio", "low", "high", "p_adjusted", "claim", "verdict")
        assert [[row[key] for key in columns] for row in comparisons] == [
            [pair[key] for key in columns] for pair in document["comparisons"]
        ]
        return
    table = csv.DictReader(command(tmp_path, "export", archive).stdout.splitlines())
    figures = [row for row in table if row["metric"] in ("operations", "all.p50", "all.p95", "all.p99")]
    points = 0
    for (copies, operation), rows in values:
        for row in rows:
            level = "TWO" if (copies, operation) == (2, "write") else "LOCAL_ONE"
            key = {"copies": copies, "operation": operation, "level": level, "clients": row["clients"]}
            (cell,) = [
                cell
                for cell in document["cells"]
                if cell["metric"] == "throughput" and key.items() <= cell["variant"].items()
            ]
            assert (row["op/s"], row["low"], row["high"]) == (cell["value"], cell["low"], cell["high"])
            trials: dict[str, list[float]] = {}
            for figure in figures:
                if all(figure[EXPORTED.get(name, name)] == str(value) for name, value in key.items()):
                    trials.setdefault(figure["metric"], []).append(float(figure["value"]))
            assert row["operations"] == sum(trials["operations"])
            for name in ("p50", "p95", "p99"):
                # A percentile of merged trials is between the percentiles of the trials.
                assert min(trials[f"all.{name}"]) <= row[f"{name} ms"] * 1e6 * (1 + 1e-9)
                assert row[f"{name} ms"] * 1e6 <= max(trials[f"all.{name}"]) * (1 + 1e-9)
            points += 1
    assert points == 12


if __name__ == "__main__":
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        current = execute(path.stem)
        for cell in current.cells:
            # Times and versions of this machine are not part of the page.
            cell.metadata.pop("execution", None)
        nbformat.write(current, path)
