"""Hooks: a user's own commands before and after a trial."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.results.trial_result import Scalar

WORDS = 400


class HookError(LoadstoneError):
    """A hook failed: the trial that it belongs to has come to nothing."""


def run(commands: Sequence[str], when: str, variables: Mapping[str, Scalar], log: Path, timeout: float) -> None:
    """Runs commands in a shell, one after the other, and appends what they say to `log`.

    Each dimension is in their environment as LOADSTONE_<NAME>. Raises HookError at the first that fails or takes
    more than `timeout` seconds.
    """
    environment = {**os.environ, **{f"LOADSTONE_{name.upper()}": str(value) for name, value in variables.items()}}
    for command in commands:
        with log.open("a+") as out:
            out.write(f"$ {command}\n")
            out.flush()
            start = out.tell()
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
            try:
                status = process.wait(timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise HookError(
                        f"the hook `{command}` ({when}) took more than {timeout:g} s",
                        "make it faster, or give the experiment a longer `timeout`",
                    ) from None
                raise
            out.seek(start)
            said = out.read()[-WORDS:].strip()
        if status:
            raise HookError(
                f"the hook `{command}` ({when}) failed with exit status {status}",
                f"it said: {said}" if said else f"it said nothing; see {log.name}",
            )
