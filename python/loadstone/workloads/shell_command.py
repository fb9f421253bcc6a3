"""Shell commands: the shell that runs them, checks before the first trial, and the version of their tool."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.experiment.model import template

# Tools that print their version, and the option for it. For other tools, only the user's command `version` is run.
VERSION_OPTIONS = {
    "cassandra-stress": "version",
    "fio": "--version",
    "hadoop": "version",
    "hdfs": "version",
    "hyperfine": "--version",
    "latte": "--version",
    "loadstone": "--version",
    "mapred": "version",
    "memtier_benchmark": "--version",
    "pgbench": "--version",
    "redis-benchmark": "--version",
    "scylla-bench": "--version",
    "sysbench": "--version",
    "yarn": "version",
}
VERSION_SECONDS = 10.0
VERSION_MAX = 80
# The answers, keyed by command and environment. Trials have different directories, but the same tool.
VERSIONS: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
# Wrappers: programs that run another program, which follows their options, numbers, signals and assignments.
WRAPPERS = {
    "chrt", "command", "env", "exec", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "sudo", "taskset",
    "time", "timeout", "unbuffer",
}  # fmt: skip
WRAPPER_ARGUMENT = re.compile(r"-.*|\d[\w.,-]*|[A-Z][A-Z0-9_]*")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Commands that determine the meaning of the following commands, and have no other effect.
SETTINGS = ("cd", "export")
# A word with its quotes, or an operator.
TOKEN = re.compile(r"""(?:[^\s'"\\;&|()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[;&|()<>]+|\n""", re.DOTALL)
OPERATOR = re.compile(r"[;&|()]+|\n")


@cache
def shell_arguments() -> tuple[str, ...]:
    """The shell and its options: the failure of any part fails a pipeline, if an installed shell supports this.

    The mode `--posix` ignores BASH_ENV, as sh does.
    """
    if shutil.which("bash"):
        return "bash", "--posix", "-o", "pipefail"
    # POSIX.1-2024 requires pipefail, but older versions of dash do not support it.
    supported = subprocess.run(["sh", "-o", "pipefail", "-c", ":"], capture_output=True).returncode == 0
    return ("sh", "-o", "pipefail") if supported else ("sh",)


def check_syntax(text: str, shell: Sequence[str]) -> None:
    """Checks a command with a shell's parser. Raises LoadstoneError with the parser's message."""
    command = template.render_template(text, defaultdict(lambda: "0"), for_shell=True)
    done = subprocess.run([*shell, "-n", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[0].rpartition(": ")[2] if lines else f"exit status {done.returncode}"
        raise LoadstoneError(f"the shell cannot parse `{text}`: {reason}", "correct its quotes and brackets")


def check_program(text: str) -> None:
    """Raises LoadstoneError if the program of a command is not installed."""
    name = program_of(text)
    if name and subprocess.run(["sh", "-c", 'command -v -- "$1"', "sh", name], capture_output=True).returncode:
        raise LoadstoneError(f"cannot run `{text}`: there is no program {name}", "install it, or write its path")


def program_of(text: str) -> str:
    """The program of a simple command, without assignments; empty if only the shell can determine it."""
    try:
        parts = shlex.split(text)
    except ValueError:
        return ""
    name = next((part for part in parts if not re.fullmatch(r"[A-Za-z_]\w*=[^$`()]*", part)), "")
    return name if re.fullmatch(r"[\w./+-]+", name) else ""


def version_command(text: str) -> str:
    """The command that prints the version of the first known tool in a command; empty if there is none.

    Keeps the assignments, wrappers, `cd` and `export` before the tool, on which the choice of the program depends.
    """
    settings: list[str] = []
    for parts in simple_commands(text):
        at = program_index(parts)
        name = parts[at].strip("'\"").rpartition("/")[2] if at < len(parts) else ""
        if name in VERSION_OPTIONS:
            return " && ".join([*settings, " ".join([*parts[: at + 1], VERSION_OPTIONS[name]])])
        if name in SETTINGS:
            settings.append(" ".join(parts))
    return ""


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command, with their quotes."""
    parts: list[str] = []
    for token in TOKEN.findall(text):
        if not OPERATOR.fullmatch(token):
            parts.append(token)
        elif parts:
            yield parts
            parts = []
    if parts:
        yield parts


def program_index(parts: Sequence[str]) -> int:
    """The index of a simple command's program, after assignments and wrappers."""
    is_wrapped = False
    for index, word in enumerate(parts):
        if word.rpartition("/")[2] in WRAPPERS:
            is_wrapped = True
        elif not (ASSIGNMENT.fullmatch(word) or (is_wrapped and WRAPPER_ARGUMENT.fullmatch(word))):
            return index
    return len(parts)


def ask_version(text: str, directory: Path, environment: Mapping[str, str]) -> str:
    """The first line that a command prints in a directory; empty if it fails. Runs the command once per environment."""
    key = (text, tuple(environment.items()))
    if key not in VERSIONS:
        VERSIONS[key] = read_version(text, directory, environment)
    return VERSIONS[key]


def read_version(text: str, directory: Path, environment: Mapping[str, str]) -> str:
    """Runs a command, and returns its first line; empty if it fails."""
    try:
        done = subprocess.run(
            [*shell_arguments(), "-c", text],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            cwd=directory,
            env=dict(environment),
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip()[:VERSION_MAX] if lines and not done.returncode else ""
