"""Hooks: a user's own commands before and after a trial."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.results.trial_result import Scalar

WORDS = 400
# Bytes that hold so many characters in any case.
TAIL_BYTES = 4 * WORDS


class HookError(LoadstoneError):
    """A hook failed, and its trial with it."""


def run(commands: Sequence[str], when: str, variables: Mapping[str, Scalar], log: Path, timeout: float) -> None:
    """Runs commands in a shell, one after the other, and appends what they say to `log`.

    Each dimension is in their environment as LOADSTONE_<NAME>. Raises HookError at the first that fails or takes
    more than `timeout` seconds.
    """
    environment = {**os.environ, **{f"LOADSTONE_{name.upper()}": str(value) for name, value in variables.items()}}
    for command in commands:
        # In bytes: a hook may say anything.
        with log.open("ab+") as out:
            out.write(f"$ {command}\n".encode(errors="replace"))
            out.flush()
            start = out.tell()
            try:
                # A group of its own, so that what it started can be ended with it.
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
                # Characters that no command can hold, or more of them than the kernel takes.
                raise HookError(
                    f"the hook `{command[:WORDS]}` ({when}) cannot be run: {error}",
                    "look at it and at the values of the dimensions, which are in its environment",
                ) from error
            try:
                status = process.wait(timeout)
            except BaseException as error:
                # One that ends while we are told to leave is gone already.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise HookError(
                        f"the hook `{command}` ({when}) took more than {timeout:g} s",
                        "make it faster, or give the experiment a longer `timeout`",
                    ) from None
                raise
            out.seek(max(start, out.seek(0, os.SEEK_END) - TAIL_BYTES))
            said = out.read().decode(errors="replace")[-WORDS:].strip()
        if status:
            raise HookError(
                f"the hook `{command}` ({when}) failed with exit status {status}",
                f"its output: {said}" if said else f"it wrote nothing; see {log.name}",
            )
