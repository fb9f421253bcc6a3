"""Runs a system on this machine: starts its servers, finds them again in any later command, and stops them."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from loadstone.format.suggestion import did_you_mean
from loadstone.observe.server_usage import Watched
from loadstone.results import lines
from loadstone.systems import registry
from loadstone.systems.base import activity, disks, jvm, networks, outside_directories, process, state, undo
from loadstone.systems.base.files.cache import READABLE, cache_root, hold_lock
from loadstone.systems.base.plan import plan_differences, plan_of
from loadstone.systems.base.startup import Say, Starting, log_of, say_nothing
from loadstone.systems.base.state import State
from loadstone.systems.base.system import Place, Server, ServerProcess, System, SystemPlan, SystemsError
from loadstone.systems.prerequisites import systems_root

# Separates the name of a system from the name of one of its instances: `redis@second`.
AT = "@"
INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
# The time that an unrecorded server may take to exit, because the server's own time limit is unknown.
PATIENCE_S = 30.0


class ServerState(StrEnum):
    """The state of a server."""

    UP = "up"
    STARTING = "starting"
    PAUSED = "paused"
    DEAD = "dead"


def all_running() -> list[RunningSystem]:
    """Every system that is up or has kept data."""
    files = sorted(Path(systems_root()).glob(f"*/{state.FILE}"))
    return [RunningSystem(path.parent.name) for path in files if path.parent.name.partition(AT)[0] in registry.SYSTEMS]


class RunningSystem:
    """One system, in a directory below a root; its servers need not exist yet."""

    def __init__(self, system: str | System, root: Path | None = None) -> None:
        name, _, instance = system.partition(AT) if isinstance(system, str) else (system.name, "", "")
        self.system = registry.load_system(name) if isinstance(system, str) else system
        if isinstance(system, str) and AT in system and not INSTANCE.fullmatch(instance):
            raise SystemsError(f'"{instance}" is not a valid instance name', "use letters, digits and . _ -")
        if instance and not self.system.has_instances:
            raise SystemsError(f"{name} has a single instance on a host", f"omit the name {instance}")
        # The name including the instance: `redis@second`.
        self.name = f"{name}{AT}{instance}" if instance else name
        # The path is normalised, because servers are found by this path.
        self.place = Place(Path(root or systems_root()).resolve() / self.name, cache_root())

    def up(
        self,
        nodes: int | None = None,
        settings: Mapping[str, str] | None = None,
        say: Say = say_nothing,
        *,
        owner: str = "",
        file_system_bytes: int = 0,
        isolated: bool = False,
    ) -> None:
        """Starts the system; if it is already running with the same plan, restarts only the servers that have exited.

        `owner` is recorded, so that other runs leave the system alone.
        Servers continue to run when this process exits. If the call fails, it stops only the servers that it started.
        Raises LoadstoneError, for example if the system is up with other settings.
        """
        self.start(self.plan_for(nodes, settings or {}, file_system_bytes, isolated=isolated), say, owner=owner)

    def start(self, plan: SystemPlan, say: Say = say_nothing, *, owner: str = "") -> None:
        """Starts the system in the same way as `up`, with a complete plan. Raises LoadstoneError."""
        with self._hold_lock(say):
            self._undo_recorded(say)
            before = self.load_state
            if before is not None and before.plan != plan:
                what = "is up" if before.started else "has kept data"
                raise SystemsError(
                    f"{self.name} {what} with other settings: {plan_differences(before.plan, plan)}",
                    f"start another instance with `--name second`, or use the same settings;"
                    f" `loadstone systems down {self.name}` deletes it and its data",
                )
            if before is not None and before.complete and len(self._alive_names(before)) == len(before.started):
                self.resume()
                return
            self._start_recorded(before, State(plan, owner=owner), say)

    def plan_for(
        self, nodes: int | None, settings: Mapping[str, str], file_system_bytes: int = 0, *, isolated: bool = False
    ) -> SystemPlan:
        """A plan with defaults filled in. Raises SystemsError for unknown settings, or if nodes cannot be isolated."""
        network = networks.address_prefix(self.place.root) if isolated else ""
        plan = plan_of(self.system, nodes, settings, file_system_bytes, network)
        if network and not self.system.isolatable:
            raise SystemsError(f"{self.name} cannot have a network for each node", "omit `isolate`")
        return plan

    def _start_recorded(self, before: State | None, new: State, say: Say) -> None:
        begin = before if before is not None and before.processes else new
        self._end_unrecorded(begin)
        for directory in (self.place.root, self.place.data, self.place.logs):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(READABLE)
        starting = Starting(self.system, self.place, replace(begin, complete=False), say)
        try:
            starting.save_state()
            self.resume()
            say(f"{self.name}: fetching its files, if missing, and writing its configuration")
            self._prepare_nodes(new.plan)
            stages = self._server_stages(new.plan)
            alive = self._alive_names(begin)
            names = [server.name for servers in stages for server in servers]
            starting.start_stages(stages, [name for name in names if name not in alive])
            starting.state = replace(starting.state, complete=True)
            starting.save_state()
        except BaseException:
            self._stop_processes(starting.state, starting.new_processes, say_nothing)
            # A start may be interrupted after a server has started and before it is recorded.
            self._end_unrecorded(starting.state)
            if before is None:
                self._remove_data()
            raise

    def down(self, keep_data: bool = False, say: Say = say_nothing) -> bool:
        """Stops every server and removes the data, unless `keep_data`; returns False if there was nothing to do.

        Works even with a damaged state file or after an interrupted start. Logs are kept. Raises SystemsError if data
        must be kept but its settings are unknown: the servers have then been stopped, and nothing is removed.
        """
        if not self.place.root.exists():
            return False
        with self._hold_lock(say):
            # A step that fails at this point may succeed once the servers have exited.
            with contextlib.suppress(SystemsError):
                self._undo_recorded(say)
            unread: SystemsError | None = None
            try:
                known = self.load_state
            except SystemsError as error:
                say(f"{self.name}: {error.args[0]}")
                known, unread = None, error
            there = known is not None or self.place.data.exists() or (self.place.root / state.FILE).exists()
            if known is not None:
                self._stop_processes(known, known.processes, say)
            there = self._end_unrecorded(None) or there
            self._undo_recorded(say)
            if keep_data and unread is not None:
                hint = f"save what you need from {self.place.data}; `loadstone systems down {self.name}` removes it"
                raise SystemsError(str(unread.args[0]), hint)
            if keep_data and known is not None:
                state.save_state(self.place.root / state.FILE, State(known.plan))
            else:
                self._remove_data()
        return there

    def status(self) -> list[tuple[ServerProcess, ServerState]]:
        """Each server with its state; empty if the system is not up. Raises SystemsError."""
        known = self.load_state
        if known is None:
            return []
        return [(entry.process, self._server_state(known, entry)) for entry in known.started]

    def running_processes(self) -> list[ServerProcess]:
        """The servers that exist, running or paused."""
        known = self.load_state
        return [member for member in known.processes if process.is_alive(member)] if known is not None else []

    def kill(self, server: str | None = None) -> None:
        """Kills a server as a crash would (SIGKILL), or all servers if none is named."""
        process.end_processes(self._select_processes(server), 0)

    def pause(self, server: str | None = None) -> None:
        """Pauses a server, or all servers (SIGSTOP): a paused server keeps its connections but does not answer."""
        self._signal_servers(signal.SIGSTOP, server)

    def resume(self, server: str | None = None) -> None:
        """Resumes paused servers."""
        self._signal_servers(signal.SIGCONT, server)

    def _signal_servers(self, number: signal.Signals, server: str | None) -> None:
        for selected in self._select_processes(server):
            for member in process.process_tree(selected):
                process.send_signal(member, number)

    def stop_servers(self, servers: Sequence[str]) -> bool:
        """Shuts servers down gracefully, all at the same time, and waits for them; False if any had to be killed."""
        known = self._require_state()
        chosen = [started for started in known.started if started.process.name in servers]
        processes = [started.process for started in chosen]
        for started in chosen:
            process.send_signal(started.process, started.stop)
        remaining = process.wait_gone(processes, max(started.patience_s for started in chosen))
        process.end_processes(processes, 0)
        return not remaining

    def revive_servers(self, say: Say = say_nothing) -> None:
        """Restarts the servers that have exited, on their existing data, and waits until all are ready. Raises
        SystemsError."""
        known = self._require_state()
        self.start(known.plan, say, owner=known.owner)

    def record_undo(self, fault: undo.Undo) -> None:
        """Records on disk how to undo a fault; `up`, `down` and `restart` then undo it. Raises SystemsError."""
        undo.write_journal(self.place.root / undo.FILE, fault)

    def undo_fault(self, say: Say = say_nothing) -> bool:
        """Undoes the recorded fault; returns False if there is none. Raises SystemsError."""
        with self._hold_lock(say):
            return self._undo_recorded(say)

    def _undo_recorded(self, say: Say) -> bool:
        path = self.place.root / undo.FILE
        fault = undo.load_journal(path)
        if fault is None:
            return False
        say(f"{self.name}: undoing a fault: {fault.fault}")
        undo.try_all(partial(self._undo_step, step) for step in undo.pending_steps(fault))
        undo.clear_journal(path)
        return True

    def _undo_step(self, step: undo.Step) -> None:
        servers = [server for server in self.running_processes() if server.name == step.target]
        if step.do == "resume":
            for member in (member for server in servers for member in process.process_tree(server)):
                process.send_signal(member, signal.SIGCONT)
        elif step.do == "unmount":
            if disks.is_shut_down(Path(step.text)):
                process.end_processes(servers, 0)
                disks.unmount_stopped(Path(step.text))
        else:
            undo.carry_out(step)

    def restart(self, server: str | None = None, say: Say = say_nothing) -> None:
        """Restarts a server, or all servers if none is named, on the existing data."""
        with self._hold_lock(say):
            self._undo_recorded(say)
            known = self._require_state()
            names = self._select_names(known, server)
            self._stop_processes(known, [member for member in known.processes if member.name in names], say)
            if not known.processes:
                # The state was recorded in an earlier boot, so none of its processes exist.
                known = State(known.plan, owner=known.owner)
            self._prepare_nodes(known.plan)
            stages = self._server_stages(known.plan)
            every = [member.name for servers in stages for member in servers]
            starting = Starting(self.system, self.place, known, say)
            try:
                starting.start_stages(stages, every if server is None else names)
            except BaseException:
                self._stop_processes(starting.state, starting.new_processes, say_nothing)
                raise

    def log_paths(self) -> list[Path]:
        """Every log file, including the logs of earlier starts."""
        return sorted(path for path in self.place.logs.rglob("*") if path.is_file())

    def find_watched(self) -> list[Watched]:
        """The running servers, for an observer; empty if the system is not up."""
        logs = self.gc_logs() if self.status() else {}
        return [
            Watched(server.name, server.address, server.pid, server.started_ticks, logs.get(server.name))
            for server in self.running_processes()
        ]

    def jvm_releases(self) -> set[str]:
        """The builds of the JVMs in which its servers run."""
        return {jvm.process_release(server.pid) for server in self.running_processes()} - {""}

    def gc_logs(self) -> dict[str, Path]:
        """The garbage collection log of each JVM, keyed by server."""
        return {entry.process.name: Path(entry.gc_log) for entry in self._require_state().started if entry.gc_log}

    @property
    def plan(self) -> SystemPlan:
        """The nodes and settings with which the system was started. Raises SystemsError if it is not up."""
        return self._require_state().plan

    @property
    def load_state(self) -> State | None:
        """The recorded state of a system that is up or has kept data; None if there is none. Raises SystemsError."""
        return state.load_state(self.place.root / state.FILE)

    def store_properties(self) -> Mapping[str, str]:
        """The properties with which a store connects."""
        return self.system.store_properties(self.place, self.plan)

    def client_environment(self) -> Mapping[str, str]:
        """The environment variables with which the system's client programs connect."""
        return self.system.client_environment(self.place, self.plan)

    def data_directories(self) -> Sequence[Path]:
        """The directories on this host with the system's data."""
        return self.system.data_directories(self.place, self.plan)

    def server_version(self) -> str:
        """The version of the started servers."""
        return self.system.server_version(self.plan)

    def read_facts(self) -> Mapping[str, str | int | float]:
        """The facts about the system that results record."""
        return self.system.read_facts(self.place, self.plan)

    def read_figures(self) -> Mapping[str, float]:
        """The current counters, including the activities of the servers."""
        logs = [(log_of(self.place, member.name), process.start_time(member)) for member in self.running_processes()]
        counted = activity.activity_figures(logs, self.system.activities)
        own = {f"{self.system.name}.{name}": number for name, number in counted.items()}
        return {**own, **self.system.read_figures(self.place, self.plan)}

    def find_backlog(self) -> str | None:
        """The pending work that must finish before every reachable replica has all writes; None if there is none."""
        return self.system.find_backlog(self.place, self.plan)

    @property
    def unseen_s(self) -> float:
        """The longest time for which pending work may remain unreported, in seconds."""
        return self.system.unseen_s if self.plan.nodes > 1 else 0.0

    def recreate_table(self, table: str, options: Mapping[str, str] | None = None) -> None:
        """Drops a store's table and creates it again."""
        self.system.create_table(self.place, self.plan, table, options or {}, replace=True)

    def _require_state(self) -> State:
        known = self.load_state
        if known is None or not known.started:
            raise SystemsError(f"{self.name} is not up", f"`loadstone systems up {self.name}` starts it")
        return known

    def _select_processes(self, server: str | None) -> list[ServerProcess]:
        known = self.load_state if server is None else self._require_state()
        if known is None:
            return []
        names = self._select_names(known, server)
        return [member for member in known.processes if member.name in names]

    def _select_names(self, known: State, server: str | None) -> list[str]:
        names = [entry.process.name for entry in known.started]
        if server is None:
            return names
        if server not in names:
            raise SystemsError(
                f'{self.name} has no server "{server}"', f"{did_you_mean(server, names)}it has {', '.join(names)}"
            )
        return [server]

    def _isolate_server(self, server: Server, node: int) -> Server:
        """A copy of a server that runs in the network of a node."""
        argv = [*networks.enter_namespace(self.place.root, node, server.user), *server.argv]
        environment = {**server.environment, **process.user_environment(server)}
        return replace(server, argv=argv, environment=environment, user=None)

    def _prepare_nodes(self, plan: SystemPlan) -> None:
        """Creates the nodes' networks and mounts their file systems, if the plan has any. Raises SystemsError."""
        if plan.network:
            networks.create_networks(self.place.root, plan.nodes)
        if not plan.file_system_bytes:
            return
        names = self.system.node_directories(plan)
        if not names:
            raise SystemsError(f"{self.name} cannot have a file system for each node", "omit `file_system`")
        user = outside_directories.choose_user()
        for name in (names[node - 1] for node in plan.local_nodes):
            disks.unmount_stopped((self.place.data / name).resolve())
            directory = outside_directories.directory_for(user, self.place, name).resolve()
            disks.mount_disk(disks.image_path(self.place.root, name), directory, plan.file_system_bytes)
            directory.chmod(READABLE)

    def _server_stages(self, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        stages = self.system.server_stages(self.place, plan)
        if plan.network:
            nodes = {name: node for node, name in enumerate(self.system.node_directories(plan), 1)}
            stages = [[self._isolate_server(server, nodes[server.name]) for server in servers] for servers in stages]
        if plan.here:
            directories = self.system.node_directories(plan)
            here = {directories[node - 1] for node in plan.here}
            stages = [[server for server in servers if server.name in here] for servers in stages]
        names = [server.name for servers in stages for server in servers]
        assert len(names) == len({*names}), f"{self.name} has two servers with the same name: {names}"
        return stages

    def _server_state(self, known: State, started: state.StartedServer) -> ServerState:
        if started.process not in known.processes or not process.is_alive(started.process):
            return ServerState.DEAD
        if process.is_paused(started.process):
            return ServerState.PAUSED
        return ServerState.UP if started.ready else ServerState.STARTING

    def _alive_names(self, known: State | None) -> set[str]:
        """The names of the recorded servers that are running."""
        return {member.name for member in known.processes if process.is_alive(member)} if known is not None else set()

    def _stop_processes(self, known: State, processes: Sequence[ServerProcess], say: Say) -> None:
        """Stops servers, beginning with the last stage."""
        for stage, stop in sorted({(entry.stage, entry.stop) for entry in known.started}, reverse=True):
            alike = [entry for entry in known.started if (entry.stage, entry.stop) == (stage, stop)]
            chosen = [entry for entry in alike if entry.process in processes]
            alive = [entry.process for entry in chosen if process.is_alive(entry.process)]
            if alive:
                say(f"{self.name}: stopping {', '.join(member.name for member in alive)}")
                process.end_processes(alive, max(entry.patience_s for entry in chosen), stop)

    def _end_unrecorded(self, known: State | None) -> bool:
        """Stops unrecorded servers and the child processes of exited servers; returns whether there were any."""
        names = self._alive_names(known)
        unrecorded = [member for member in process.find_marked(self.place.root) if member.name not in names]
        process.end_processes(unrecorded, PATIENCE_S)
        return bool(unrecorded)

    def _remove_data(self) -> None:
        """Removes the data and then the state, so that an interrupted `down` can be repeated."""
        self.system.clear_outside(self.place)
        if self.place.data.exists():
            disks.remove_disks(self.place.root, self.place.data.iterdir())
            outside_directories.remove_outside(self.place)
        networks.remove_networks(self.place.root)
        if self.place.data.exists():
            shutil.rmtree(self.place.data)
        for name in (undo.FILE, state.FILE):
            lines.remove_file(self.place.root / name)

    @contextlib.contextmanager
    def _hold_lock(self, say: Say) -> Iterator[None]:
        """Keeps other processes from changing the system. Converts file system errors to SystemsErrors."""
        try:
            lock = self.place.root / "lock"
            with hold_lock(lock, lambda: say(f"{self.name}: another loadstone process is using it; waiting")):
                yield
        except OSError as error:
            where = error.filename or self.place.root
            raise SystemsError(
                f"{where}: {error.strerror or error}",
                "check the file system, or set other directories in LOADSTONE_SYSTEMS and LOADSTONE_CACHE",
            ) from error
