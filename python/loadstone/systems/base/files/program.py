"""Runs the machine's programs that download and unpack files; an error quotes the output line with the cause."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.systems.base.system import SystemsError

MESSAGE_MAX = 300
# Error lines of apt, Maven, PostgreSQL and javac.
ERROR = re.compile(r"^(E: |\[ERROR\] \S|[a-z]+: error)|(FATAL|ERROR|: error): ")
# Terminal colour codes (ECMA-48), some of which remain in Maven's batch mode.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def find_program(program: str, hint: str) -> str:
    """The path of a program. Raises SystemsError if it is not on PATH."""
    path = shutil.which(program)
    if path is None:
        raise SystemsError(f"{program} is not on PATH", hint)
    return path


def run_program(
    argv: Sequence[str],
    what: str,
    hint: str,
    directory: Path | None = None,
    variables: Mapping[str, str] | None = None,
    *,
    user: str | None = None,
    stdin: str = "",
    timeout_s: float | None = None,
) -> str:
    """Runs a program as the current user or as `user`, and returns its output.

    Raises SystemsError with `what` and the output line that states the cause.
    """
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            argv,
            input=stdin,
            cwd=directory,
            # The messages are parsed and printed among Loadstone's messages, so they must be in English.
            env={**os.environ, "LC_ALL": "C.UTF-8", **(variables or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            **run_as(user),
        )
    except subprocess.TimeoutExpired:
        raise SystemsError(f"{what}: no answer after {timeout_s:g} s", hint) from None
    except OSError as error:
        raise SystemsError(f"{what}: cannot run {argv[0]}: {error.strerror}", hint) from error
    if done.returncode:
        raise SystemsError(
            f"{what}: {failure_line(done.stderr + done.stdout) or f'exit status {done.returncode}'}", hint
        )
    return done.stdout


def run_as(user: str | None) -> dict[str, Any]:
    """The arguments with which `subprocess` runs a program as a user; None is the current user."""
    if user is None:
        return {}
    account = pwd.getpwnam(user)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def failure_line(text: str) -> str:
    """The line of a program's output that states why it failed: the first error line, otherwise the last line."""
    lines = [line.strip() for line in COLOUR.sub("", text).splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    return (errors or lines[-1:] or [""])[0].removeprefix("E: ").removeprefix("[ERROR] ")[:MESSAGE_MAX]
