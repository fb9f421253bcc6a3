"""The record of a started system in a file, from which any later command can find and stop its servers."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from loadstone.engine.document import read_document
from loadstone.results import lines
from loadstone.systems.base.system import ServerProcess, SystemPlan, SystemsError

VERSION = 1
# The file's name in the directory of a system.
FILE = "state.json"


@dataclass(frozen=True)
class StartedServer:
    """A server that was started, with the information needed to stop it."""

    process: ServerProcess
    # Later stages are stopped first.
    stage: int
    patience_s: float
    stop: signal.Signals = signal.SIGTERM
    gc_log: str | None = None
    # Whether the server has become ready since its start.
    ready: bool = False


@dataclass(frozen=True)
class State:
    """A system's plan, and its servers in the order in which they were started."""

    plan: SystemPlan
    started: tuple[StartedServer, ...] = ()
    # Whether every server of the plan has been started and become ready.
    complete: bool = False
    # `experiment` if an experiment started the system; empty for the command line.
    owner: str = ""
    # Pids from another boot are meaningless.
    boot: str = field(default_factory=lambda: boot_id())

    @property
    def processes(self) -> list[ServerProcess]:
        """The processes that may still be running; none after a reboot."""
        return [entry.process for entry in self.started] if self.boot == boot_id() else []

    def with_started(self, new: StartedServer) -> State:
        """The state with an added server, which replaces any earlier server with the same name."""
        unchanged = (entry for entry in self.started if entry.process.name != new.process.name)
        return replace(self, started=(*unchanged, new))

    def mark_ready(self, names: list[str]) -> State:
        """The state with these servers marked as ready."""
        marked = [replace(entry, ready=True) if entry.process.name in names else entry for entry in self.started]
        return replace(self, started=tuple(marked))


def boot_id() -> str:
    """The identity of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def load_state(path: Path) -> State | None:
    """Reads a state; None if there is no file. Raises SystemsError if it is damaged."""
    try:
        document = json.loads(path.read_bytes())
        if document["state"] != VERSION:
            raise damage_error(path, f"it has version {document['state']}, not {VERSION}")
        started = [{**entry, "process": entry, "stop": signal.Signals[entry["stop"]]} for entry in document["started"]]
        return read_document(State, {**document, "started": started})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise damage_error(path, f"it is damaged ({type(error).__name__})") from error


def damage_error(path: Path, what: str) -> SystemsError:
    """The error for a state that cannot be read."""
    down = f"`loadstone systems down {path.parent.name}`"
    return SystemsError(f"{path}: {what}", f"{down} stops every server that was started there, and removes the data")


def save_state(path: Path, state: State) -> None:
    """Writes a state, completely or not at all."""
    started = []
    for entry in state.started:
        process_document = asdict(entry)
        started.append({**process_document.pop("process"), **process_document, "stop": entry.stop.name})
    document = {**asdict(state), "state": VERSION, "started": started}
    # The settings may contain a password.
    lines.replace_file(path, json.dumps(document, indent=1).encode(), 0o600)
