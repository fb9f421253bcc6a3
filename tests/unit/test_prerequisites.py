"""Runs scripts/prerequisites.sh with stand-ins for the programs of a machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash") or "/bin/bash"

# A shell script for each program of a complete machine, with the oldest accepted versions.
COMPLETE = {
    "cargo": "",
    "rustc": "echo 'rustc 1.90.0 (1159e78c4 2025-09-14)'",
    "python3": "[[ $2 == *version* ]] && echo 3.11.2; [[ $1 == -c ]]",
    "javac": "echo 'javac 17.0.15'",
    "mvn": "",
    "gcc": "",
    "make": "",
}
RUSTUP_NET = "curl -sSf https://sh.rustup.rs | sh"


def prerequisites(directory: Path, programs: dict[str, str]) -> tuple[int, list[str]]:
    """Runs the script with only these programs; returns its status and output lines."""
    for name, script in programs.items():
        program = directory / name
        program.write_text(f"#!{BASH}\n{script}\n")
        program.chmod(0o755)
    environment = {"PATH": str(directory), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    result = subprocess.run(
        [BASH, ROOT / "scripts/prerequisites.sh"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.stdout == ""
    return result.returncode, result.stderr.splitlines()


def test_a_complete_machine_is_passed_in_silence(tmp_path: Path) -> None:
    assert prerequisites(tmp_path, COMPLETE) == (0, [])


def test_an_empty_machine_is_told_all_at_once(tmp_path: Path) -> None:
    assert prerequisites(tmp_path, {}) == (
        2,
        [
            f"error: cargo not found: {RUSTUP_NET}",
            f"error: rustc not found: {RUSTUP_NET}",
            "error: python3 not found: apt-get install python3 python3-venv",
            "error: javac not found: apt-get install openjdk-17-jdk-headless",
            "error: mvn not found: apt-get install maven",
            "error: gcc not found: apt-get install gcc libc6-dev",
            "error: make not found: apt-get install make",
        ],
    )


@pytest.mark.parametrize("missing", COMPLETE)
def test_each_missing_program_is_named_alone(tmp_path: Path, missing: str) -> None:
    status, lines = prerequisites(tmp_path, {name: script for name, script in COMPLETE.items() if name != missing})
    assert status == 2
    assert [line.split(" not found: ")[0] for line in lines] == [f"error: {missing}"]


@pytest.mark.parametrize(
    ("program", "script", "line"),
    [
        ("rustc", "echo 'rustc 1.63.0'", f"rustc 1.63.0 is too old; 1.90 is needed: {RUSTUP_NET}"),
        ("rustc", "exit 1", f"rustc does not run: {RUSTUP_NET}"),
        (
            "python3",
            "echo 3.9.2",
            "python3 3.9.2 is too old; 3.11 is needed: apt-get install python3.11-venv && make PYTHON=python3.11",
        ),
        ("python3", "[[ $2 == *version* ]] && echo 3.11.2", "python3 has no module venv: apt-get install python3-venv"),
        (
            "javac",
            "echo 'javac 1.8.0_402' >&2",
            "javac 1.8.0_402 is too old; 17 is needed: apt-get install openjdk-17-jdk-headless",
        ),
        ("gcc", "exit 1", "gcc cannot find stdlib.h: apt-get install libc6-dev"),
    ],
)
def test_unsuitable_program_is_named_with_its_version(tmp_path: Path, program: str, script: str, line: str) -> None:
    assert prerequisites(tmp_path, {**COMPLETE, program: script}) == (2, [f"error: {line}"])


def test_newer_versions_will_do(tmp_path: Path) -> None:
    newer = {
        "rustc": "echo 'rustc 1.100.0-nightly'",
        "python3": COMPLETE["python3"].replace("3.11.2", "3.14.0rc1"),
        "javac": "echo 'javac 21-ea'",
    }
    assert prerequisites(tmp_path, {**COMPLETE, **newer}) == (0, [])


def test_rustup_is_used_where_it_is(tmp_path: Path) -> None:
    status, lines = prerequisites(tmp_path, {**COMPLETE, "rustup": "", "rustc": "echo 'rustc 1.89.0'"})
    assert status == 2
    assert lines == [
        "error: rustc 1.89.0 is too old; 1.90 is needed: rustup toolchain install stable && rustup default stable"
    ]
