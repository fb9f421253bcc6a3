"""The engine's crates depend in one direction, as ARCHITECTURE.md shows, and the modules of a crate have no cycles."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from lab_support import ROOT

CRATES = ROOT / "crates"
# A crate may use the crates on the lines above it.
LEVELS = (
    ("crc", "load"),
    ("session", "stress"),
    ("storage", "stores"),
    ("wire",),
    ("measure",),
    ("kinds",),
    ("registry",),
    ("cassandra-stress", "dfsio", "tera", "ycsb"),
    ("engine",),
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}


def dependencies(crate: str) -> set[str]:
    """The workspace crates that a crate uses outside its tests."""
    manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
    return {name.removeprefix("loadstone-") for name in manifest["dependencies"] if name.startswith("loadstone-")}


def modules(crate: str) -> dict[Path, set[Path]]:
    """The modules that each module of a crate uses outside tests and comments. A module is a file."""
    source = CRATES / crate / "src"
    files = [file.relative_to(source) for file in source.glob("**/*.rs")]
    graph: dict[Path, set[Path]] = {file: set() for file in files if "test" not in str(file)}
    for file, used in graph.items():
        code = re.split(r"#\[cfg\(test\)\]\n(?:pub.* )?mod tests \{", (source / file).read_text())[0]
        code = re.sub(r"^\s*//.*", "", code, flags=re.MULTILINE)
        imports = re.findall(r"\buse\s+((?:crate|super|self)::[^;]+);", code)
        code = re.sub(r"\buse\s+[^;]+;", "", code)
        paths = [path for tree in imports for path in expand_imports(tree)]
        paths += re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", code)
        matches = {find_module(locate_path(file, path.split("::")), graph) for path in paths}
        used |= {match for match in matches if match} - {file}
    return graph


def expand_imports(tree: str) -> list[str]:
    """All paths in an import such as `a::{b, c::{d, e}}`."""
    head, brace, inner = re.sub(r"\s+as\s+\w+|\s", "", tree).partition("{")
    if not brace:
        return [head]
    parts, depth = [""], 0
    for character in inner.removesuffix("}"):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [head + path for part in parts if part for path in expand_imports(part)]


def locate_path(file: Path, path: list[str]) -> list[str]:
    """A path from the root of the crate."""
    if path[0] == "crate":
        return path[1:]
    module = [part for part in file.with_suffix("").parts if part not in {"mod", "lib", "main"}]
    while path and path[0] in {"self", "super"}:
        module = module[:-1] if path[0] == "super" else module
        path = path[1:]
    return module + path


def find_module(path: list[str], graph: Mapping[Path, object]) -> Path | None:
    """The file of the innermost module in a path."""
    for end in range(len(path), 0, -1):
        module = Path(*path[:end])
        for file in (module.with_suffix(".rs"), module / "mod.rs"):
            if file in graph:
                return file
    return None


def test_every_crate_has_a_level() -> None:
    assert {manifest.parent.name for manifest in CRATES.glob("*/Cargo.toml")} == LEVEL.keys()


def test_crates_depend_in_one_direction() -> None:
    climbing = [
        f"{crate} uses {other}" for crate in LEVEL for other in dependencies(crate) if LEVEL[other] >= LEVEL[crate]
    ]
    assert climbing == []


def test_measuring_core_knows_no_store() -> None:
    assert dependencies("measure") == {"load", "session", "wire"}


@pytest.mark.parametrize("crate", LEVEL)
def test_modules_have_no_cycle(crate: str) -> None:
    try:
        TopologicalSorter(modules(crate)).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(map(str, error.args[1])))


def test_architecture_shows_the_levels_of_crates() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    levels = text.split("<!-- crates -->")[1].split("<!-- /crates -->")[0]
    lines = [line.strip() for line in levels.splitlines() if line.strip()]
    assert lines == [" · ".join(level) for level in LEVELS]
