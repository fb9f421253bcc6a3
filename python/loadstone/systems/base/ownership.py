"""Marks the run that owns servers: with a lock next to their state, and with the owner's name in the state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.systems.base.files.cache import hold_lock
from loadstone.systems.base.running_system import RunningSystem

MARK = "experiment.lock"
# The owner that a run records in the state of its servers. A later run may stop only servers with this owner.
OWNER = "experiment"


class TakenError(LoadstoneError):
    """The servers that an experiment would start are already running, and it must not stop them."""


def refuse_taken(running: RunningSystem) -> None:
    """Raises TakenError if the system is up or has data, and no experiment started it."""
    known = running.load_state
    if known is not None and known.owner != OWNER:
        name = running.name
        raise TakenError(
            f"{name} {'is up' if known.started else 'has kept data'}, and no experiment started it",
            f"measure it with `attach`, or delete it and its data with `loadstone systems down {name}`; servers with"
            f" another name, such as `loadstone systems up {name} --name mine`, may stay up next to an experiment",
        )


@contextmanager
def hold_ownership(root: Path) -> Iterator[None]:
    """Marks the servers of the system in `root` as owned by this run. Raises TakenError if another run owns them.

    The mark is a lock on a file next to the system's state. It is taken before the first server starts and kept as long
    as the run lasts. The kernel releases it, however the run ends.
    """
    path = root / MARK

    def refuse() -> None:
        message = f"another run uses the servers in {root} (process {path.read_text() or 'unknown'})"
        raise TakenError(message, "wait until that run has finished")

    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(path, refuse))
            path.write_text(str(os.getpid()))
        except OSError as error:
            raise LoadstoneError(
                f"cannot write {path}: {error.strerror}", "set LOADSTONE_SYSTEMS to a directory that you can write to"
            ) from error
        yield
