"""Hooks: the user's commands before and after a trial."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.results.trial_result import Scalar

SHOWN_CHARS = 400
# UTF-8 has at most four bytes per character.
TAIL_BYTES = 4 * SHOWN_CHARS


class HookError(LoadstoneError):
    """A hook failed, so its trial failed."""


def run(commands: Sequence[str], when: str, variables: Mapping[str, Scalar], log: Path, timeout: float) -> None:
    """Runs commands in a shell, one after another, and appends their output to `log`.

    Their environment contains each variable as LOADSTONE_<NAME>. Raises HookError at the first command that fails or
    takes more than `timeout` seconds.
    """
    environment = {**os.environ, **{f"LOADSTONE_{name.upper()}": str(value) for name, value in variables.items()}}
    for command in commands:
        # The log is opened in binary mode, because the output may not be text.
        with log.open("ab+") as out:
            out.write(f"$ {command}\n".encode(errors="replace"))
            out.flush()
            start = out.tell()
            try:
                # The command runs in its own process group, so that its children can be killed with it.
                process = subprocess.Popen(
                    command,
                    shell=True,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=environment,
                    process_group=0,
                )
            except (OSError, ValueError) as error:
                # The command or its environment contains a NUL byte, or is too long for the kernel.
                raise HookError(
                    f"the hook `{command[:SHOWN_CHARS]}` ({when}) cannot be run: {error}",
                    "check the command and the values of the dimensions, which are in its environment",
                ) from error
            try:
                status = process.wait(timeout)
            except BaseException as error:
                # The process group may have exited by now.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise HookError(
                        f"the hook `{command}` ({when}) took more than {timeout:g} s",
                        "make it faster, or set a longer `timeout` in the experiment",
                    ) from None
                raise
            out.seek(max(start, out.seek(0, os.SEEK_END) - TAIL_BYTES))
            tail = out.read().decode(errors="replace")[-SHOWN_CHARS:].strip()
        if status:
            raise HookError(
                f"the hook `{command}` ({when}) failed with exit status {status}",
                f"its output: {tail}" if tail else f"run it by hand: it printed nothing (see {log.name})",
            )
