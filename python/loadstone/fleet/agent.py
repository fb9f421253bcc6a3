"""The agent of a host: it starts the host's engines, merges their events, observes the host, and reports the time of
the host's clock.

The lab calls `exchange` repeatedly. A call delivers commands, returns the events since the last call, and shows that
the lab is alive. If there is no call for the length of the lease, the agent revokes the leases of its engines. The
agent knows nothing about the transport (`loadstone.fleet.ray`); its arguments and results are JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.engine.events import Note, Ready, Summary
from loadstone.engine.trial import LEASE_MS, EngineError, Spec, Trial, follow_trials
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import HISTOGRAM_LOGS, CommandContext
from loadstone.fleet.clock import HostClock
from loadstone.fleet.command import Launcher
from loadstone.fleet.host_systems import HostSystems
from loadstone.fleet.merge import Merger
from loadstone.fleet.shipping import engine_hash, install_engine
from loadstone.format import units
from loadstone.observe.environment import describe_environment
from loadstone.observe.observer import Observer
from loadstone.observe.summary import SERVER
from loadstone.observe.watch import Watch
from loadstone.results.value import Value
from loadstone.systems.base.state import boot_id

# The name of the observer's phase that begins when every engine of the host is ready.
MEASURE = "measure"
# The longest time for which a call may wait for events.
WAIT_SECONDS_MAX = 5.0
DOCTOR_SECONDS = 60.0
# The observer's figures that describe a host of the fleet.
HOST_FIGURES = (
    "cpu.busy",
    "cpu.steal",
    "cpu.others",
    "memory.available_min",
    "network.received",
    "network.sent",
    "device.read",
    "device.written",
    "device.written_after",
)
# The interval between checks of a running command, and the largest output that a host sends, B.
CHECK_SECONDS = 0.2
OUTPUT_MAX = 16 << 20
VERSION_SECONDS = 10.0

Message = dict[str, Any]


class Agent:
    """The engines of one host. Any thread may call `exchange`, but only one thread at a time may poll."""

    def __init__(
        self, clock: HostClock | None = None, transport_pids: Mapping[str, int] | None = None, name: str = "host"
    ) -> None:
        """`transport_pids` are the transport's processes, by name; their CPU time is reported, but not as interference.

        `name` is the host's name in the fleet.
        """
        self._clock = clock or HostClock()
        self._transport_pids = dict(transport_pids or {})
        self.systems = HostSystems(name, transport_pids)
        self._messages: deque[Message] = deque()
        self._changed = threading.Condition()
        self._heard_at = self._clock.monotonic()
        self._launch: Launch | None = None

    def facts(self) -> dict[str, Any]:
        """A description of the host: hardware, kernel, versions, processor type and libc."""
        return {
            **describe_environment(arguments=()),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip(),
            "loadstone": __version__,
            "pid": os.getpid(),
            "engine_sha256": engine_hash(),
            # Equal on hosts that share a kernel, such as containers and namespaces.
            "boot_sha256": hashlib.sha256(boot_id().encode()).hexdigest(),
        }

    def exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Executes commands, and returns the time of the host's clock.

        A `poll` also returns new messages, after at most `wait_seconds`. A `call` also returns the result or the error
        of an operation on systems, when the operation is done.
        """
        received_ns = self._clock.unix_ns()
        self._heard_at = self._clock.monotonic()
        for command in request.get("commands", ()):
            self._obey(command)
        reply: Message = {"received_ns": received_ns}
        if request.get("facts"):
            reply["facts"] = self.facts()
        if request.get("doctor"):
            reply["facts"] = {"doctor": examine_host()}
        if request.get("poll"):
            reply |= {"poll": True, "messages": self._collect(float(request.get("wait_seconds", 0.0)))}
        if call := request.get("call"):
            reply |= {"call": call, **self._perform(request["operation"], request["arguments"])}
        self._heard_at = self._clock.monotonic()
        return {**reply, "replied_ns": self._clock.unix_ns()}

    def _perform(self, operation: str, arguments: Mapping[str, Any]) -> Message:
        try:
            return {"result": self.systems.perform(operation, arguments) if operation else None}
        except LoadstoneError as error:
            return {"failed": {"message": str(error.args[0]), "hint": error.hint}}
        except Exception as error:
            # The lab waits for a reply even after an internal error.
            message = f"{operation}: {type(error).__name__}: {error}"
            return {"failed": {"message": message, "hint": "report this internal error"}}

    def _collect(self, seconds: float) -> list[Message]:
        with self._changed:
            if seconds > 0:
                self._changed.wait_for(lambda: bool(self._messages), min(seconds, WAIT_SECONDS_MAX))
            messages = list(self._messages)
            self._messages.clear()
        return messages

    def install(self, data: bytes, sha256: str) -> Message:
        """Stores an engine in the cache under its hash, and uses it. The reply has an `error` if the engine cannot run
        here."""
        received_ns = self._clock.unix_ns()
        error = install_engine(data, sha256)
        return {"received_ns": received_ns, "installed": sha256, "error": error, "replied_ns": self._clock.unix_ns()}

    def close(self) -> None:
        """Kills every engine."""
        if self._launch is not None:
            self._launch.kill()

    def _obey(self, command: Mapping[str, Any]) -> None:
        match command:
            case {"launch": number, "specs": specs, **more}:
                self.close()
                # Messages from an earlier launch are no longer needed.
                with self._changed:
                    self._messages.clear()
                kind = CommandLaunch if "command" in specs[0] else Launch
                self._launch = kind(number, specs, self, more.get("offset_ns", 0))
                self._launch.start()
            case {"start_at": unix_ns} if self._launch is not None:
                self._launch.start_at(self._clock.to_kernel_ns(int(unix_ns)))
            case {"stop": _} if self._launch is not None:
                self._launch.stop()
            case {"kill": _}:
                self.close()

    def send(self, message: Message) -> None:
        """Queues a message for the lab."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def is_abandoned(self, lease_seconds: float) -> bool:
        """Whether the lab has been silent for longer than the lease."""
        return self._clock.monotonic() - self._heard_at > lease_seconds

    def host_ns(self, kernel_ns: int) -> int:
        """Converts an instant that an engine reported to this host's clock."""
        return self._clock.from_kernel_ns(kernel_ns)

    @property
    def transport_pids(self) -> Mapping[str, int]:
        """The transport's processes, by name."""
        return self._transport_pids

    def list_processes(self) -> dict[str, int]:
        """The processes that do not count as interference: the transport's, and the servers that this agent started."""
        servers = {f"{SERVER}{server.name}": server.pid for server in self.systems.find_watched()}
        return {**self._transport_pids, **servers}


class Launch(threading.Thread):
    """A thread that follows one launch of engines."""

    def __init__(self, number: int, specs: Sequence[Spec], agent: Agent, offset_ns: int = 0) -> None:
        """`offset_ns` is this host's clock minus the lab's."""
        super().__init__(name=f"launch {number}", daemon=True)
        self._number = number
        self._specs = specs
        self._agent = agent
        self._offset_ns = offset_ns
        self._trials: list[Trial] = []
        self._is_ended = False
        self._lock = threading.Lock()
        self._lease_seconds = max((spec.get("lease_ms") or LEASE_MS for spec in specs), default=LEASE_MS) / 1e3

    def start_at(self, unix_ns: int) -> None:
        """Makes every engine start its load at an instant of the kernel's clock."""
        for trial in self._trials:
            trial.start_at(unix_ns)

    def stop(self) -> None:
        """Stops the load; summaries follow."""
        for trial in self._trials:
            trial.stop_load()

    def kill(self) -> None:
        """Kills every engine immediately."""
        with self._lock:
            self._is_ended = True
            for trial in self._trials:
                trial.kill()

    def run(self) -> None:
        """Follows the engines until they exit, and reports all events."""
        try:
            self._follow()
        except LoadstoneError as error:
            self._send(failed={"message": str(error.args[0]), "hint": error.hint, "status": status_of(error)})
        except Exception as error:
            self._send(failed={"message": f"internal error: {error}", "hint": "report it", "status": 1})
        self._send(end=True)

    def _send(self, **message: Any) -> None:
        self._agent.send({"launch": self._number, **message})

    def _follow(self) -> None:
        titles = [f"segment {spec['segment']['k']}/{spec['segment']['n']}" for spec in self._specs]
        starts: list[int] = []
        with ExitStack() as stack:
            # Engines that load servers store no data on this host, so the device with temporary files is observed.
            directory = Path(tempfile.gettempdir())
            observer = stack.enter_context(Observer(directory, self._agent.list_processes()))
            merger = stack.enter_context(Merger(titles, partial(self._forward, observer)))
            waiting = set()
            for segment, spec in enumerate(self._specs):
                trial = Trial(spec)
                stack.enter_context(trial)
                with self._lock:
                    self._trials.append(trial)
                    if self._is_ended:
                        trial.kill()
                observer.watch_process(f"engine.{segment}", trial.pid)
                waiting.add(trial)
                trial.heard = partial(self._hear, merger, segment)
            places = {trial: segment for segment, trial in enumerate(self._trials)}
            for trial, event in follow_trials(*self._trials, idle=partial(self._idle, observer)):
                match event:
                    case EngineError() if waiting and len(self._specs) > 1:
                        # Nothing has been measured, and the remaining engines would wait for the failed engine.
                        raise event
                    case Note():
                        # The lab expects the segment's number in the whole trial, not its place on this host.
                        message = f"{titles[places[trial]]}: {event.message}"
                        self._send(note=asdict(replace(event, message=message)))
                        continue
                    case EngineError():
                        merger.lose(places[trial], event)
                        waiting.discard(trial)
                    case Ready():
                        waiting.discard(trial)
                    case Summary():
                        starts.append(self._agent.host_ns(event.start_unix_ns))
                for _ in merger.take(event):
                    # Merged events have already been forwarded as lines.
                    pass
            observer.take_sample()
            if len(merger.lost) < len(self._specs):
                # Completes the summary, which is then forwarded.
                merger.result()
            for segment, error in merger.lost.items():
                self._send(lost=titles[segment], message=error.args[0], hint=error.hint, status=error.status)
            self._send(starts=starts, figures=self._figures(read_phase(observer)))

    def _hear(self, merger: Merger, segment: int, line: str) -> None:
        if not line.startswith('{"event":"note"'):
            merger.hear(segment, line)

    def _forward(self, observer: Observer, line: str) -> None:
        if line.startswith('{"event":"ready"'):
            observer.begin_phase(MEASURE)
        if line.startswith('{"event":"summary"'):
            # Instants are converted, because they are compared with instants from other hosts and the lab.
            line = json.dumps(shift_instants(json.loads(line), self._agent, self._offset_ns), separators=(",", ":"))
        self._send(line=line)

    def _idle(self, observer: Observer) -> None:
        observer.poll_sample()
        if self._agent.is_abandoned(self._lease_seconds):
            for trial in self._trials:
                trial.revoke_lease()

    def _figures(self, observed: Iterable[Value]) -> list[tuple[str, float, str, int]]:
        """The figures of the host while its engines ran, each as metric, value, unit and number of samples."""
        figures = {value.metric: value for value in observed}
        engines = [value for metric, value in figures.items() if metric.startswith("engine.")]
        chosen = [figures[metric] for metric in HOST_FIGURES if metric in figures]
        for suffix, unit in (("cpu", "processors"), ("memory_max", "B")):
            values = [value for value in engines if value.metric.endswith(f".{suffix}")]
            if values:
                chosen.append(Value(f"engines.{suffix}", sum(value.value for value in values), unit, values[0].n))
        transport = [figures[f"{name}.cpu"] for name in self._agent.transport_pids if f"{name}.cpu" in figures]
        if transport:
            chosen.append(Value("carrier.cpu", sum(value.value for value in transport), "processors", transport[0].n))
        return [(value.metric, value.value, value.unit, value.n) for value in chosen]


class CommandLaunch(Launch):
    """A thread that runs and follows another tool's command in place of engines."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._start_ns: int | None = None
        self._changed = threading.Condition(self._lock)

    def start_at(self, unix_ns: int) -> None:
        """Makes the command start at an instant of the kernel's clock."""
        with self._changed:
            self._start_ns = unix_ns
            self._changed.notify_all()

    def stop(self) -> None:
        """Terminates the command."""
        self.kill()

    def kill(self) -> None:
        """Terminates the command."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def _follow(self) -> None:
        (spec,) = self._specs
        base = Path(spec["directory"])
        try:
            self._run_command(spec, base)
        except BaseException:
            remove_directory(base)
            raise
        if spec["is_last"]:
            remove_directory(base)

    def _run_command(self, spec: Spec, base: Path) -> None:
        """Runs the command in `base`/data, and sends its output and the histogram logs in `base`/results."""
        command, data, results = spec["command"], base / "data", base / "results"
        for path in (data, results):
            path.mkdir(parents=True, exist_ok=True)
        for name, text in command["files"].items():
            (results / name).write_text(text)
        defaults = {name: text for name, text in command["defaults"].items() if name not in os.environ}
        context = CommandContext(results, data, environment={**defaults, **command["environment"]})
        version = read_first_line(command["version"], context) if command["version"] else ""
        argv, stdout, stderr = command["argv"], base / "stdout", base / "stderr"
        if shutil.which(argv[0], path=context.variables.get("PATH")) is None:
            raise LoadstoneError(f"cannot run {argv[0]}: it is not installed", "install it on every host")
        for path in (stdout, stderr):
            path.write_bytes(b"")
        place = Path(command["place"])
        with Watch(place if place.exists() else data, None) as watch:
            for name, pid in self._agent.list_processes().items():
                watch.watch(name, pid)
            # The CPU time of the launcher and its command counts as this process's once the launcher has exited.
            with Launcher() as process:
                self._send(ready=True)
                self._await_start()
                started_ns = time.time_ns()
                process.start(argv, data, context.variables, stdout, stderr)
                while (end := process.wait(CHECK_SECONDS)) is None:
                    self._check_continuation((stdout, stderr))
                    watch.take_sample()
        status, use = end
        outputs = {stdout.name: stdout, stderr.name: stderr}
        outputs |= {path.name: path for ending in HISTOGRAM_LOGS for path in sorted(results.glob(ending))}
        check_size(outputs.values())
        files = {name: base64.b64encode(path.read_bytes()).decode() for name, path in outputs.items()}
        self._send(exited={"status": status, "use": asdict(use), "version": version, "files": files})
        cpu = ("engines.cpu", use.cpu_ns / max(use.elapsed_ns, 1), "processors", 1)
        self._send(starts=[self._agent.host_ns(started_ns)], figures=[*self._figures(watch.values(0)), cpu])

    def _await_start(self) -> None:
        """Waits until the instant of the start. Raises LoadstoneError if the lab stops the launch, or is silent."""
        while True:
            self._check_continuation()
            with self._changed:
                rest = CHECK_SECONDS if self._start_ns is None else (self._start_ns - time.time_ns()) / 1e9
                if rest <= 0:
                    return
                self._changed.wait(min(rest, CHECK_SECONDS))

    def _check_continuation(self, outputs: Sequence[Path] = ()) -> None:
        """Raises LoadstoneError if the command must not continue."""
        if self._is_ended:
            raise LoadstoneError("its command was stopped", "see the first error")
        if self._agent.is_abandoned(self._lease_seconds):
            raise LoadstoneError("its command was stopped, because the lab was silent", "check the network")
        check_size(outputs)


def check_size(outputs: Iterable[Path]) -> None:
    """Raises LoadstoneError if the outputs of a command are too large to be sent to the lab."""
    size = sum(path.stat().st_size for path in outputs if path.is_file())
    if size > OUTPUT_MAX:
        message = f"its command printed {units.format_size(size)}; the limit is {units.format_size(OUTPUT_MAX)}"
        raise LoadstoneError(message, "have it print less, or redirect its output to /dev/null")


def read_first_line(argv: Sequence[str], context: CommandContext) -> str:
    """The first line that a command prints; empty if it fails."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": VERSION_SECONDS}
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, cwd=context.directory, env=context.variables, **options)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines and not done.returncode else ""


def remove_directory(path: Path) -> None:
    """Removes the directory of a command, as far as possible."""
    shutil.rmtree(path, ignore_errors=True)


def read_phase(observer: Observer) -> Iterator[Value]:
    """The figures of the measured phase; none if the load never started."""
    with suppress(KeyError):
        yield from observer.phase_figures(MEASURE)


def examine_host() -> dict[str, Any]:
    """The document of `loadstone doctor --json` on this host; empty if it cannot run."""
    command = [sys.executable, "-c", "import sys; from loadstone.cli import main; sys.exit(main())", "doctor", "--json"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=DOCTOR_SECONDS).stdout
        document = json.loads(text)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return document if isinstance(document, dict) else {}


def shift_instants(part: Any, agent: Agent, offset_ns: int) -> Any:
    """Converts the epoch timestamps in part of an event to times on the lab's clock."""
    if isinstance(part, list):
        return [shift_instants(element, agent, offset_ns) for element in part]
    if not isinstance(part, dict):
        return part
    return {
        key: agent.host_ns(element) - offset_ns
        if key.endswith("unix_ns") and isinstance(element, int)
        else shift_instants(element, agent, offset_ns)
        for key, element in part.items()
    }


def status_of(error: LoadstoneError) -> int:
    """The exit status of the engine that caused an error; 1 for other errors."""
    return error.status if isinstance(error, EngineError) else 1
