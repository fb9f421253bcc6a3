"""What the tests of DFSIO share: the command, and its results taken apart."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20
# Hadoop's own lines, as scripts in the wild take them apart.
LINE = re.compile(r"^ *([A-Za-z&/ ]+?): (.*)$")


@dataclass(frozen=True)
class DfsioResult:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def ours(self, name: str) -> str:
        """A figure of our part of the report, by the start of its name; it must stand there once."""
        (value,) = [line.partition(": ")[2] for line in self.out.splitlines() if line.strip().startswith(name)]
        return value

    def counted(self, step: str) -> int:
        """How often a step was recorded."""
        found = [line for line in self.out.splitlines() if line.strip().startswith(f"{step}: count")]
        return int(found[0].rpartition(": ")[2].partition(",")[0]) if found else 0


def dfsio(
    program: Path, home: Path, line: str, *more: str | Path, prefix: Sequence[str] = (), **run: Any
) -> DfsioResult:
    """Runs `dfsio …` to its end, whatever that is."""
    words = [*prefix, str(program), "dfsio", *line.split(), *map(str, more)]
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=300, **run)
    return DfsioResult(done.returncode, done.stdout, done.stderr)


def blocks(text: str) -> list[dict[str, str]]:
    """The results in a `-resFile`, whoever wrote them."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        if line.startswith("----- TestDFSIO ----- : "):
            found.append({"test": line.partition(" : ")[2]})
        elif (match := LINE.match(line)) and found:
            found[-1][match[1]] = match[2]
    return found


def trial(program: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Runs a spec by `trial`; returns its summary."""
    done = subprocess.run(
        [program, "trial"], input=json.dumps(spec) + "\n", capture_output=True, text=True, timeout=300, check=True
    )
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert summary["event"] == "summary", done.stdout
    return summary
