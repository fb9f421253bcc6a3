"""The journal of a fault: the steps that undo it, which are on disk before the fault begins.

The steps are data, so any later command can carry them out, even if the process that injected the fault was killed. A
step does nothing if the fault is not in effect.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from loadstone.engine.document import read_document
from loadstone.errors import LoadstoneError
from loadstone.results import lines
from loadstone.systems.base.disks import run_command
from loadstone.systems.base.state import boot_id
from loadstone.systems.base.system import SystemsError

VERSION = 1
# The file's name in the directory of a system.
FILE = "undo.json"
# The move is repeated, because a process that is forked during the move stays in the old group.
ATTEMPTS = 50


@dataclass(frozen=True)
class Step:
    """One step.

    `resume` resumes the server `target`. `unmount` unmounts the directory `text` of the server `target`, if the
    file system in it has stopped.
    `remove` removes the file `target`. `leave_group` moves the processes of the control group `target` to the group
    `text`, and removes `target`. `run` runs `command`.
    """

    do: Literal["resume", "unmount", "remove", "leave_group", "run"]
    target: str = ""
    text: str = ""
    command: tuple[str, ...] = ()
    # Whether a reboot of the host undoes this part of the fault, as it does for a signal.
    volatile: bool = True


@dataclass(frozen=True)
class Undo:
    """The steps that undo a fault."""

    # The fault's description in messages, such as `pause of redis`.
    fault: str
    steps: tuple[Step, ...] = ()
    boot: str = field(default_factory=boot_id)


def write_journal(path: Path, undo: Undo) -> None:
    """Records the steps that undo a fault; they are on the device when this function returns. Raises SystemsError."""
    document = {"undo": VERSION, **asdict(undo)}
    try:
        lines.replace_file(path, json.dumps(document, indent=1).encode(), 0o600)
    except OSError as error:
        raise SystemsError(
            f"cannot write {path}: {error.strerror}", "no fault was injected; free some space"
        ) from error


def load_journal(path: Path) -> Undo | None:
    """Reads a journal; None if there is none. Raises SystemsError if it is damaged."""
    try:
        document = json.loads(path.read_bytes())
        if document["undo"] != VERSION:
            raise ValueError(f"its version is {document['undo']}, expected {VERSION}")
        return read_document(Undo, document)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        hint = "undo the fault by hand, then remove the file"
        raise SystemsError(f"{path} is damaged ({error}): a fault may be in effect", hint) from error


def clear_journal(path: Path) -> None:
    """Removes the journal of a fault that has been undone."""
    path.unlink(missing_ok=True)


def pending_steps(undo: Undo) -> Sequence[Step]:
    """The steps that are still necessary: a reboot has already undone the volatile steps."""
    return undo.steps if undo.boot == boot_id() else [step for step in undo.steps if not step.volatile]


def carry_out_all(path: Path, say: Callable[[str], object]) -> bool:
    """Undoes a recorded fault on attached servers; returns False if there is none. Raises SystemsError."""
    fault = load_journal(path)
    if fault is None:
        return False
    say(f"undoing a fault: {fault.fault}")
    try_all(partial(carry_out, step) for step in pending_steps(fault))
    clear_journal(path)
    return True


def try_all(actions: Iterable[Callable[[], object]]) -> None:
    """Performs every action, even if an earlier action fails. Raises the first LoadstoneError."""
    failures = []
    for act in actions:
        try:
            act()
        except LoadstoneError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def carry_out(step: Step) -> None:
    """Carries out a step that works on files or runs a command. Raises SystemsError."""
    try:
        if step.do == "remove":
            Path(step.target).unlink(missing_ok=True)
        elif step.do == "leave_group":
            leave_group(Path(step.target), Path(step.text))
        elif step.do == "run":
            run_command(step.command, "run it by hand")
    except OSError as error:
        raise SystemsError(f"cannot undo a fault ({step.do} {step.target}): {error}", "undo it by hand") from error


def leave_group(group: Path, parent: Path) -> None:
    """Moves the processes of a control group to another group, and removes the emptied group. Raises OSError."""
    for _ in range(ATTEMPTS):
        if not group.is_dir():
            return
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.02)
    group.rmdir()
