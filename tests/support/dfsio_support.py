"""Shared by the tests of DFSIO: the command, and a parser of its results."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20
# A line of Hadoop's results, matched by the regular expression that existing scripts use.
LINE = re.compile(r"^ *([A-Za-z&/ ]+?): (.*)$")


@dataclass(frozen=True)
class DfsioResult:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    def engine_figure(self, name: str) -> str:
        """The figure in the only line of the output that begins with `name`."""
        (value,) = [line.partition(": ")[2] for line in self.out.splitlines() if line.strip().startswith(name)]
        return value

    def count_steps(self, step: str) -> int:
        """The number of times that a step was recorded."""
        results = [line for line in self.out.splitlines() if line.strip().startswith(f"{step}: count")]
        return int(results[0].rpartition(": ")[2].partition(",")[0]) if results else 0


def dfsio(
    program: Path, home: Path, line: str, *more: str | Path, prefix: Sequence[str] = (), **run: Any
) -> DfsioResult:
    """Runs `dfsio …` to its end and returns its result, whatever its exit code."""
    command = [*prefix, str(program), "dfsio", *line.split(), *map(str, more)]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300, **run)
    return DfsioResult(done.returncode, done.stdout, done.stderr)


def blocks(text: str) -> list[dict[str, str]]:
    """The results in a `-resFile`, written by Loadstone or by Hadoop."""
    results: list[dict[str, str]] = []
    for line in text.splitlines():
        if line.startswith("----- TestDFSIO ----- : "):
            results.append({"test": line.partition(" : ")[2]})
        elif (match := LINE.match(line)) and results:
            results[-1][match[1]] = match[2]
    return results


def trial(program: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Runs a spec with `trial`; returns its summary."""
    done = subprocess.run(
        [program, "trial"], input=json.dumps(spec) + "\n", capture_output=True, text=True, timeout=300, check=True
    )
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert summary["event"] == "summary", done.stdout
    return summary
