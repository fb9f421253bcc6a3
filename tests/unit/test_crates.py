"""The engine's crates depend in one direction, as ARCHITECTURE.md shows, and the modules of a crate have no cycles."""

from __future__ import annotations

import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from lab_support import ROOT

CRATES = ROOT / "crates"
# A crate may use the crates on the lines above it.
LEVELS = (
    ("crc", "load", "stress"),
    ("session",),
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


def modules(crate: str) -> dict[str, set[str]]:
    """The modules used by each top module of a crate outside tests and comments."""
    source = CRATES / crate / "src"
    files = [file for file in source.glob("**/*.rs") if "test" not in str(file.relative_to(source))]
    graph: dict[str, set[str]] = {top(file, source): set() for file in files}
    for file in files:
        text = file.read_text().split("#[cfg(test)]\nmod tests {")[0]
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
        used = set(re.findall(r"\bcrate::(\w+)", code)) & graph.keys()
        graph[top(file, source)] |= used - {top(file, source)}
    return {module: used for module, used in graph.items() if module not in {"lib", "main"}}


def top(file: Path, source: Path) -> str:
    return file.relative_to(source).parts[0].removesuffix(".rs")


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
        pytest.fail(" → ".join(error.args[1]))


def test_architecture_shows_the_levels_of_crates() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    levels = text.split("<!-- crates -->")[1].split("<!-- /crates -->")[0]
    lines = [line.strip() for line in levels.splitlines() if line.strip()]
    assert lines == [" · ".join(level) for level in LEVELS]
