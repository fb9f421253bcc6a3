"""The lab's packages depend in one direction, as ARCHITECTURE.md shows: an import that climbs fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from lab_support import ROOT

PACKAGE = ROOT / "python/loadstone"
# Each may import those above it, and itself. What stands on one line may not import its neighbours.
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
# The rooms of `experiment`, with those that each may import.
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "reading": {"model"},
    "validation": {"model", "reading"},
    "plan": {"model"},
}
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}


def imports(file: Path) -> Iterator[list[str]]:
    """What a module imports of this package, anywhere in it, as the words of its name without the package's."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [f"{node.module}.{each.name}" for each in node.names] if node.module == "loadstone" else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            # `from loadstone import __version__` is of no package.
            if parts[0] == "loadstone" and len(parts) > 1 and not parts[1].startswith("__"):
                yield parts[1:]


def part(file: Path) -> str:
    """The package, or the module beside the packages, that a file belongs to."""
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
    assert {each.name for each in below.iterdir() if (each / "__init__.py").exists()} == ROOMS.keys()
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
    picture = text[text.index("<!-- levels -->") : text.index("<!-- /levels -->")]
    shown = tuple(tuple(line.split(" · ")) for line in picture.splitlines() if line.startswith("    ") and line.strip())
    assert tuple(tuple(name.strip() for name in line) for line in shown) == LEVELS
