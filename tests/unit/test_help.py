"""The help of every command, and the pages generated from it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lab_support import ROOT, loadstone
from loadstone.cli import commands
from loadstone.commands.completion import FORMS
from loadstone.commands.systems import VERBS

ENGINE = ROOT / ".venv/bin/loadstone-engine"
LINES = (
    [[name] for name in commands()]
    + [["systems", verb, "redis"] for verb in VERBS]
    + [["systems", "hbase"], ["cassandra-stress", "write"]]
)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_every_command_prints_help(tmp_path: Path, line: list[str]) -> None:
    done = loadstone(tmp_path, *line, "--help")
    assert "usage" in done.stdout.lower()
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["merge", "certificates", "schema"])
def test_every_engine_command_prints_help(tmp_path: Path, command: str) -> None:
    done = subprocess.run([ENGINE, command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: loadstone-engine {command}")


def test_ycsb_help_lists_every_store(tmp_path: Path) -> None:
    text = loadstone(tmp_path, "ycsb", "--help").stdout
    described = json.loads(loadstone(tmp_path, "describe").stdout)
    for store in described["stores"]:
        if store["holds"] == "records":
            assert f"\n  {store['name']:<15} {store['about']}\n" in text


def test_unknown_store_names_jvm_host(tmp_path: Path) -> None:
    error = loadstone(tmp_path, "ycsb", "load", "foo", "-p", "recordcount=1", code=2).stderr
    assert "runs in the JVM host: jvm -db site.ycsb.db.CLASS -cp 'YCSB/lib/*:YCSB/NAME-binding/lib/*'" in error


@pytest.mark.parametrize(
    ("line", "setting"),
    [("redis --port 6399", "port=6399"), ("redis@b --port=6399", "port=6399"), ("hdfs --http.port 9", "http.port=9")],
)
def test_setting_written_as_option_names_set(tmp_path: Path, line: str, setting: str) -> None:
    error = loadstone(tmp_path, "systems", "up", *line.split(), code=2).stderr
    assert error.endswith(f": use --set {setting}\n")


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(loadstone(tmp_path, "completion", "bash").stdout)
    completions = {
        "loadstone do": "doctor",
        "loadstone run --dry": "--dry-run",
        "loadstone ycsb -thr": "-threads",
        "loadstone systems upp": "",
        "loadstone systems sta": "status",
        "loadstone systems up --tl": "--tls",
        "loadstone systems up redis --clu": "--cluster",
        "loadstone systems hbase create-table --sp": "--splits",
        "loadstone fleet ch": "check",
        "loadstone show --tl": "",
    }
    for line, expected in completions.items():
        fill = f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; _loadstone; echo ${{COMPREPLY[*]}}"
        done = subprocess.run(["bash", "-c", f". ./script; {fill}"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (f"{expected}\n", ""), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_valid_in_its_shell(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(loadstone(tmp_path, "completion", shell).stdout)
    done = subprocess.run([shell, "-n", "script"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_man_page_renders_without_warning(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    page = loadstone(tmp_path, "completion", "man").stdout
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("--dry-run", "systems up", "'COMMAND A'"):
        assert word in done.stdout.replace("\N{HYPHEN}", "-")


@pytest.mark.parametrize("form", sorted({*FORMS} - {"bash"}))
def test_every_form_names_every_command(tmp_path: Path, form: str) -> None:
    text = loadstone(tmp_path, "completion", form).stdout
    for name in commands():
        assert name in text.replace("\\-", "-")
    assert "dry" in text
