"""The lab's packages depend in one direction, as ARCHITECTURE.md shows. An import in the other direction fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from lab_support import ROOT

PACKAGE = ROOT / "python/loadstone"
# A package may import the packages above its line, and itself. Packages on one line may not import each other.
LEVELS = (
    ("errors",),
    ("engine", "format"),
    ("statistics",),
    ("results",),
    ("importers", "observe", "search"),
    ("judge", "systems"),
    ("experiment", "report"),
    ("faults",),
    ("doctor", "fleet", "workloads"),
    ("runner",),
    ("live",),
    ("commands",),
    ("api", "cli"),
)
# The subpackages of `experiment`, with the subpackages that each may import.
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "reading": {"model"},
    "validation": {"model", "reading"},
    "plan": {"model"},
}
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}


def imports(file: Path) -> Iterator[list[str]]:
    """The loadstone modules that a module imports, each as the parts of its name after `loadstone`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "loadstone" else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            # `from loadstone import __version__` belongs to no package.
            if parts[0] == "loadstone" and len(parts) > 1 and not parts[1].startswith("__"):
                yield parts[1:]


def part(file: Path) -> str:
    """The package that contains a file, or the module if no package contains it."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_every_part_has_its_level() -> None:
    parts = {part(file) for file in PACKAGE.glob("**/*.py")} - {"__init__"}
    assert parts == LEVEL.keys()


def test_no_import_climbs() -> None:
    climbing = [
        f"{file.relative_to(PACKAGE)} imports {other}"
        for file in sorted(PACKAGE.glob("**/*.py"))
        if (own := part(file)) != "__init__"
        for other, *_ in imports(file)
        if other != own and LEVEL[other] >= LEVEL[own]
    ]
    assert climbing == []


def test_experiment_subpackages_depend_in_one_direction() -> None:
    below = PACKAGE / "experiment"
    assert {path.name for path in below.iterdir() if (path / "__init__.py").exists()} == ROOMS.keys()
    climbing = [
        f"{file.relative_to(below)} imports {'.'.join(other)}"
        for room, allowed in ROOMS.items()
        for file in sorted((below / room).glob("*.py"))
        for other in imports(file)
        if other[0] == "experiment" and other[1] in ROOMS.keys() - allowed - {room}
    ]
    assert climbing == []


def test_one_file_imports_ray() -> None:
    statement = re.compile(r"^\s*(?:import|from) ray\b", re.MULTILINE)
    files = {
        file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if statement.search(file.read_text())
    }
    assert files == {"fleet/ray.py"}


def test_architecture_shows_the_levels() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    chart = text[text.index("<!-- levels -->") : text.index("<!-- /levels -->")]
    output = tuple(tuple(line.split(" · ")) for line in chart.splitlines() if line.startswith("    ") and line.strip())
    assert tuple(tuple(name.strip() for name in line) for line in output) == LEVELS
