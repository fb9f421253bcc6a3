"""The environment of an experiment (environment.json): everything outside the experiment that affects figures.

The file is meant to be shared, so it contains no environment variables, no user or host names, and no passwords from
command lines.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys as python
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.engine import program
from loadstone.engine.describe import HIDDEN
from loadstone.errors import LoadstoneError
from loadstone.observe.host_facts import describe_host, drop_unknown
from loadstone.observe.kernel_file import PROC, SYS
from loadstone.results.trial_result import Scalar

VERSION = 1
# The packages that compute and read figures and draw charts.
PACKAGES = ("altair", "numpy", "psutil", "pyarrow", "pydantic", "pyyaml", "rich", "scipy", "vl-convert-python")
# Time limits, so that neither a hanging engine nor a huge repository delays an experiment.
ENGINE_SECONDS = 2.0
GIT_SECONDS = 0.3

# The arguments to hide in the command line of any program, in addition to passwords (SECRET_NAME). The pattern must not
# match `num_tokens=256`.
SECRET = (
    r"(?:pass(?:word|wd|phrase)?|pwd|token|user(?:[-_.]?name)?|login|auth"
    r"|(?:api|access|private)[-_.]?key|(?:secret|credential)[\w-]*)"
)
SECRET_VALUE = re.compile(rf"{SECRET}[\"']?\s*[=:]\s*(?=\S)", re.IGNORECASE)
SECRET_FLAG = re.compile(rf"-.*{SECRET}", re.IGNORECASE)
ADDRESS = re.compile(r"(\w+://)[^/@\s]+@")
HOMES = re.compile(r"/(home|Users)/[^/\s:=,]+")


def describe_environment(
    directory: Path | None = None, *, arguments: Sequence[str] | None = None, proc: Path = PROC, sys: Path = SYS
) -> dict[str, Any]:
    """The hardware and software of this experiment, as JSON; unknown values are omitted.

    `directory` is the data directory, and `arguments` is the command line (by default, the command line of this
    process).
    """
    return {
        "environment": VERSION,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "hosts": [describe_host(directory, proc=proc, sys=sys)],
        "versions": list_versions(),
        "git": read_commit(),
        "command": redact_arguments(python.argv if arguments is None else arguments),
    }


def list_versions() -> dict[str, Any]:
    """The versions of Loadstone, its engine, Python and the packages in use."""
    return drop_unknown(
        {
            "loadstone": __version__,
            "engine": engine_version(),
            "python": platform.python_version(),
            "packages": {
                name: distribution.version for name in PACKAGES for distribution in metadata.distributions(name=name)
            },
        }
    )


def engine_version() -> str | None:
    """The version that the engine reports; None if no engine can be run."""
    try:
        version = command_output([program.find_engine(), "--version"], ENGINE_SECONDS)
    except LoadstoneError:
        return None
    return version.strip().removeprefix(program.NAME).strip() or None if version else None


def read_commit() -> dict[str, Any] | None:
    """The commit of the current directory's repository, and whether tracked files differ from it; None if there is no
    repository."""
    status = command_output(["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"], GIT_SECONDS)
    if status is None:
        # In a huge repository, the commit alone is still quick to find.
        commit = command_output(["git", "rev-parse", "--verify", "HEAD"], GIT_SECONDS)
        return {"commit": commit.strip()} if commit else None
    lines = status.splitlines()
    commit = next((line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid ")), None)
    # A repository without a commit has "(initial)" here.
    if commit is None or commit.startswith("("):
        return None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}


def command_output(command: list[str], seconds: float) -> str | None:
    """The output of a program; None if it is missing, fails or takes too long."""
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, env=quiet)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """A command line that is safe to publish, without the program's path, secrets and home directories."""
    shared = [os.path.basename(name) for name in arguments[:1]]
    for before, argument in pairwise(arguments):
        argument = ADDRESS.sub(rf"\1{HIDDEN}@", argument)
        if SECRET_FLAG.fullmatch(before):
            shared.append(HIDDEN)
        elif match := SECRET_VALUE.search(argument):
            # All following arguments may be part of the secret.
            shared.append(hide_home(argument[: match.end()]) + HIDDEN)
        else:
            shared.append(hide_home(argument))
    return shared


def hide_home(word: str) -> str:
    """A word in which `~` replaces the path of a user's home directory."""
    home = os.path.expanduser("~")
    if len(home) > 1:
        word = re.sub(re.escape(home) + r"(?=/|$)", "~", word)
    return HOMES.sub("~", word)


def environment_facts(environment: Mapping[str, Any]) -> dict[str, Scalar]:
    """The facts of a trial that must be equal for figures to be compared (the check `sides-differ`).

    `cpus` and `memory_bytes` state what is available to the processes of one host, within the limits of containers. If
    hosts have different values, the values are joined by `+`.
    """
    hosts = environment.get("hosts", ())
    values_by_fact: dict[str, list[Scalar | None]] = {
        "cpu_model": [host.get("cpu", {}).get("model") for host in hosts],
        "cpus": [usable_processors(host) for host in hosts],
        "memory_bytes": [usable_memory(host) for host in hosts],
        "kernel": [host.get("kernel") for host in hosts],
    }
    facts: dict[str, Scalar] = {"hosts": len(hosts)} if hosts else {}
    for name, values in values_by_fact.items():
        known = list(dict.fromkeys(value for value in values if value is not None))
        if known:
            facts[name] = known[0] if len(known) == 1 else " + ".join(str(value) for value in known)
    return facts


def usable_processors(host: Mapping[str, Any]) -> Scalar | None:
    """The number of processors that may be used at the same time: the minimum of the online processors, the affinity
    mask and the quota."""
    cpu, limits = host.get("cpu", {}), host.get("limits", {})
    numbers = (cpu.get("processors"), cpu.get("usable"), limits.get("processors"))
    least = min((number for number in numbers if number is not None), default=None)
    return int(least) if least is not None and least == int(least) else least


def usable_memory(host: Mapping[str, Any]) -> Scalar | None:
    """The memory that may be used, B."""
    numbers = (host.get("memory", {}).get("bytes"), host.get("limits", {}).get("memory_bytes"))
    return min((number for number in numbers if number is not None), default=None)
