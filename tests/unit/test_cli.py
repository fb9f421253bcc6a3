"""The command `loadstone`, run as a user runs it, with stand-ins for the engine."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Prints what a front end receives: its arguments, one per line, then its standard input.
ECHO = """#!/bin/sh
printf '%s\\n' "$(basename "$(dirname "$0")")" "$@"
cat
exit 7
"""


class Installation:
    """An installation of only the Python side: a virtual environment with the command but no engine."""

    def __init__(self, home: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "installed"], check=True)
        self.home = home
        script = f"#!{home}/installed/bin/python\nimport sys\nfrom loadstone.cli import main\nsys.exit(main())\n"
        self.command = self.program("installed/bin/loadstone", script)

    def program(self, path: str, text: str = ECHO) -> Path:
        """Writes an executable file below the installation's home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def run(self, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs `loadstone` in the home directory, with a minimal environment and the given variables."""
        return subprocess.run(
            [self.command, *arguments],
            input=stdin,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), **variables},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def loadstone(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_help_names_every_command_on_standard_output(loadstone: Installation) -> None:
    result = loadstone.run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "usage: loadstone <command>" in result.stdout
    for command in ("ycsb", "trial", "run", "compare", "LOADSTONE_ENGINE"):
        assert f"\n  {command} " in result.stdout
    assert loadstone.run("-h").stdout == loadstone.run("help").stdout == result.stdout


def test_version_is_that_of_the_rust_workspace(loadstone: Installation) -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    result = loadstone.run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"loadstone {version}\n", "")


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["ycbs", "load"], 'unknown command "ycbs"', 'did you mean "ycsb"? `loadstone --help` lists the commands'),
        (["zzz"], 'unknown command "zzz"', "`loadstone --help` lists the commands"),
        (["--verison"], 'unknown option "--verison"', 'did you mean "--version"? `loadstone --help` lists the options'),
        ([], "a command is missing", "`loadstone --help` lists the commands"),
    ],
)
def test_bad_usage_exits_2_with_a_hint(loadstone: Installation, arguments: list[str], error: str, hint: str) -> None:
    result = loadstone.run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: {error}\nhint: {hint}\n"


@pytest.mark.parametrize("command", ["ycsb", "trial"])
def test_no_engine_anywhere_exits_1_with_a_hint(loadstone: Installation, command: str) -> None:
    result = loadstone.run(command)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: loadstone-engine is neither next to {loadstone.command} nor on PATH\n"
        "hint: install the wheel that `make wheel` builds, build it with `make`, or set LOADSTONE_ENGINE\n"
    )


def test_arguments_input_and_exit_status_pass_unchanged(loadstone: Installation) -> None:
    loadstone.program("installed/bin/loadstone-engine")
    arguments = ["ycsb", "load", "rocksdb", "--help", "-p", "a=b c", "", "-version", "*", "--"]
    result = loadstone.run(*arguments, stdin="not for us\n")
    assert result.stdout.splitlines() == ["bin", *arguments, "not for us"]
    assert (result.returncode, result.stderr) == (7, "")


def test_engine_lookup_prefers_variable_then_installation_then_path(loadstone: Installation) -> None:
    search = f"{loadstone.home}/on-path:/usr/bin:/bin"
    loadstone.program("on-path/loadstone-engine")
    assert loadstone.run("trial", PATH=search).stdout == "on-path\ntrial\n"
    loadstone.program("installed/bin/loadstone-engine")
    assert loadstone.run("trial", PATH=search).stdout == "bin\ntrial\n"
    named = loadstone.program("named/engine-under-test")
    assert loadstone.run("trial", PATH=search, LOADSTONE_ENGINE=str(named)).stdout == "named\ntrial\n"


def test_engine_in_the_working_directory_is_ignored(loadstone: Installation) -> None:
    loadstone.program("loadstone-engine")
    result = subprocess.run(
        [loadstone.home / "installed/bin/python", "-c", "from loadstone.engine import program; program.find_engine()"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python")},
        cwd=loadstone.home,
        capture_output=True,
        text=True,
    )
    assert "loadstone-engine is neither next to" in result.stderr


def test_invalid_engine_variable_overrides_the_installed_engine(loadstone: Installation) -> None:
    loadstone.program("installed/bin/loadstone-engine")
    result = loadstone.run("ycsb", LOADSTONE_ENGINE="/nowhere/engine")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "error: there is no program at /nowhere/engine (LOADSTONE_ENGINE)\n"
        "hint: name an executable file, or unset LOADSTONE_ENGINE to use the installed loadstone-engine\n"
    )


def test_an_engine_of_another_machine_is_an_error(loadstone: Installation) -> None:
    engine = loadstone.program("installed/bin/loadstone-engine", "\x7fELF, but not of here")
    result = loadstone.run("ycsb")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: cannot run {engine}: Exec format error\n"
        "hint: the file may be damaged or built for another machine; run `make`\n"
    )


def test_a_front_end_imports_no_further_modules(loadstone: Installation) -> None:
    loadstone.program("installed/bin/loadstone-engine")
    at_start = "import os, sys\nstart = set(sys.modules)\n"
    report = "os.execv = lambda *_: sys.exit(' '.join(sorted(set(sys.modules) - start)))\n"
    run = "from loadstone.cli import main\nmain()\n"
    loadstone.program("installed/bin/loadstone", f"#!{loadstone.home}/installed/bin/python\n{at_start}{report}{run}")
    assert loadstone.run("ycsb").stderr.split() == [
        "__future__",
        "loadstone",
        "loadstone.cli",
        "loadstone.engine",
        "loadstone.engine.program",
        "loadstone.errors",
    ]
