"""What is known of a system that was started, as a file: enough for any later command to find and end its servers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadstone.systems.base.system import Plan, Process, SystemsError

VERSION = 1
# Its name in the directory of a system.
FILE = "state.json"


@dataclass(frozen=True)
class Started:
    """A server that was started."""

    process: Process
    # Later stages are ended first.
    stage: int
    patience_s: float
    stop: signal.Signals = signal.SIGTERM
    gc_log: str | None = None
    # Whether it was seen to serve.
    ready: bool = False


@dataclass(frozen=True)
class State:
    """A system's plan, and its servers in the order in which they were started."""

    plan: Plan
    started: tuple[Started, ...] = ()
    # Whether every server of the plan was started and seen to serve.
    complete: bool = False
    # Who started it; "" for the command line.
    owner: str = ""
    # Pids of another boot mean nothing.
    boot: str = field(default_factory=lambda: boot_id())

    @property
    def processes(self) -> list[Process]:
        """Those that this boot may still have."""
        return [each.process for each in self.started] if self.boot == boot_id() else []

    def with_started(self, new: Started) -> State:
        """With one more, in the place of an earlier one of its name."""
        return replace(self, started=(*self.without([new.process.name]).started, new))

    def without(self, names: list[str]) -> State:
        """Without the servers of these names."""
        return replace(self, started=tuple(each for each in self.started if each.process.name not in names))

    def ready(self, names: list[str]) -> State:
        """With these seen to serve."""
        marked = [replace(each, ready=True) if each.process.name in names else each for each in self.started]
        return replace(self, started=tuple(marked))


def boot_id() -> str:
    """What no other boot of this machine has."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def load(path: Path) -> State | None:
    """Reads a state; None if there is none. Raises SystemsError when it is damaged."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise damaged(path, "it is not text") from error
    try:
        document = json.loads(text)
        if document["state"] != VERSION:
            raise damaged(path, f"it has version {document['state']}, not {VERSION}")
        return from_json(document)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"it is damaged ({type(error).__name__})") from error


def damaged(path: Path, what: str) -> SystemsError:
    """The error of a state that cannot be read."""
    name = path.parent.name
    return SystemsError(
        f"{path}: {what}", f"`loadstone systems down {name}` ends every server that was started there, and its data"
    )


def save(path: Path, state: State) -> None:
    """Writes a state, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # The settings may hold a password.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(to_json(state), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def to_json(state: State) -> dict[str, Any]:
    """The document that stands in state.json."""
    started = [
        {
            "name": each.process.name,
            "address": each.process.address,
            "pid": each.process.pid,
            "started_ticks": each.process.started_ticks,
            "stage": each.stage,
            "patience_s": each.patience_s,
            "stop": each.stop.name,
            "gc_log": each.gc_log,
            "ready": each.ready,
        }
        for each in state.started
    ]
    plan = {"nodes": state.plan.nodes, "settings": dict(state.plan.settings)}
    return {
        "state": VERSION,
        "boot": state.boot,
        "owner": state.owner,
        "complete": state.complete,
        "plan": plan,
        "started": started,
    }


def from_json(document: Mapping[str, Any]) -> State:
    """The state that a document tells."""
    plan = Plan(int(document["plan"]["nodes"]), {str(k): str(v) for k, v in document["plan"]["settings"].items()})
    started = tuple(
        Started(
            Process(str(each["name"]), str(each["address"]), int(each["pid"]), int(each["started_ticks"])),
            int(each["stage"]),
            float(each["patience_s"]),
            signal.Signals[each["stop"]],
            each["gc_log"],
            bool(each["ready"]),
        )
        for each in document["started"]
    )
    return State(plan, started, bool(document["complete"]), str(document.get("owner", "")), str(document["boot"]))
