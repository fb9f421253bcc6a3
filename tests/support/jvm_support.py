"""Test bindings for the store `jvm`, compiled once against YCSB's core."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

MAVEN = Path(os.environ.get("LOADSTONE_MAVEN") or Path.home() / ".m2/repository")
CORE = MAVEN / "site/ycsb/core/0.17.0/core-0.17.0.jar"
ROCKSDB = MAVEN / "org/rocksdb/rocksdbjni/10.10.1/rocksdbjni-10.10.1-linux64.jar"


def compile_binding(name: str, directory: Path, *jars: Path) -> Path:
    """Compiles a binding into `directory`, and returns this directory."""
    for jar in (CORE, *jars):
        if not jar.is_file():
            pytest.fail(f"no {jar}: run `make`")
    path = os.pathsep.join(map(str, (CORE, *jars)))
    source = ROOT / "tests/java" / f"{name}.java"
    subprocess.run(["javac", "-Xlint:all,-processing", "-Werror", "-cp", path, "-d", directory, source], check=True)
    return directory
