"""Runs a trial from start to end: servers, hooks, the phases of its workload kind, and the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from loadstone.engine import secrets
from loadstone.engine.describe import describe_engine
from loadstone.engine.events import Note
from loadstone.engine.trial import EngineError, Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import CommandContext, Ended, EngineLaunch, ObservedCommand, Phase, kind_of
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan import order
from loadstone.experiment.plan.plan import PlannedTrial, Variant
from loadstone.faults.fault import FaultError
from loadstone.faults.injector import Injector
from loadstone.fleet.command import CommandError
from loadstone.fleet.host_figures import add_disturbances
from loadstone.fleet.interface import Fleet
from loadstone.format import units
from loadstone.judge.checks import errors
from loadstone.observe import page_cache
from loadstone.observe.watch import Watch
from loadstone.results.fault import FaultRecord
from loadstone.results.folder import FAULTS
from loadstone.results.trial_result import Scalar, TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner import command, datasets, fault_figures, hooks, phase, phase_result, stage_figures
from loadstone.runner.command import HostsEnded
from loadstone.runner.phase import Finished
from loadstone.runner.phase_result import PhaseResult
from loadstone.runner.progress import Display
from loadstone.runner.series import add_pauses
from loadstone.runner.server_pool import RunServers, ServersError, TrialServers, with_address
from loadstone.systems.base import undo

# The default timeout of a phase is its window and warm-up plus this time, which covers loading, settling and closing.
PATIENCE_SECONDS = 3600.0
# The time limit for the hooks after a trial if the run is being interrupted: they cannot be interrupted again.
LEAVING_SECONDS = 60.0
# The parent of the directories of commands on other hosts, unless the experiment has a `directory`.
HOST_DIRECTORY = Path("/tmp")
# The names of notes about failures outside the engines.
NOTES: dict[type[LoadstoneError], str] = {hooks.HookError: "hook", ServersError: "servers", FaultError: "faults"}


@dataclass
class Conductor:
    """Runs the trials of one experiment."""

    experiment: Experiment
    spaces: datasets.DataSpaces
    display: Display
    fleet: Fleet
    servers: RunServers
    # Distinguishes the directories of commands on hosts.
    attempt: str = ""

    def conduct(self, planned: PlannedTrial, files: Path, start: TrialResult) -> TrialResult:
        """Runs a trial and writes its files below `files`; returns `start`, completed with the outcome.

        If an engine exits without a result, or a hook fails, the returned result states this. Raises LoadstoneError for
        an error that affects every trial.
        """
        variant = planned.variant
        self.attempt = uuid4().hex[:12]
        start = replace(start, clients=variant.clients)
        directory = self.spaces.space_at(variant.directory).empty_directory()
        at: TrialServers | None = None
        injector: Injector | None = None
        results: list[PhaseResult] = []
        try:
            self.display.step("servers")
            at = self.servers.prepare(variant, files / "servers.log", reuse=bool(self.experiment.load.reuse))
            planned = replace(planned, variant=with_address(variant, at))
            injector = self._injector(planned, at, files)
            with self._run_hooks(planned, directory, files):
                for phase in kind_of(variant).phases(planned.variant, self.experiment):
                    if result := self._perform(phase, planned, directory, files, at, injector):
                        results.append(result)
                        if result.end != "done":
                            break
        except (EngineError, hooks.HookError, ServersError, FaultError) as error:
            lost = isinstance(error, EngineError) and error.status < 0 and not isinstance(error, CommandError)
            name = "lost-segment" if lost else NOTES.get(type(error), "failed")
            faults = injector.records if injector else ()
            notes = (*exit_notes(at), Note(name, str(error.args[0]), error.hint), *lift_notes(faults))
            return self._hidden(replace(start, end="lost" if lost else "failed", notes=notes, faults=faults))
        finally:
            datasets.remove(directory)
        self.display.step("tear down")
        measured = [value for result in results for value in result.values]
        # Facts and time series come from the measured phase.
        main = next(result for result in results if result.role == "measure")
        notes = (*exit_notes(at), *(note for result in results for note in result.notes))
        if at is not None:
            notes += (*at.still_busy(),)
            # If engines ran on a server's host, the figures of their observer replace these figures of the host.
            measured = [*at.of_hosts, *measured, *at.values(), *add_disturbances(measured, at.of_hosts)]
            at.write(files / "servers.json")
        ended = replace(
            start,
            values=add_amplification(values_by_metric(*measured)),
            clients=main.clients,
            end=next((result.end for result in results if result.end != "done"), "done"),
            notes=notes,
            facts=main.facts,
            statuses=main.statuses,
            requested={**main.requested, **record_hooks(self.experiment, variant.system)},
            of_system=main.of_system,
            loop=main.loop,
            faults=injector.records if injector else (),
        )
        ended, series = fault_figures.add_figures(ended, main.series, files, recovery_options(planned))
        ended = stage_figures.add_figures(ended, planned.variant.stages, files)
        if series is not None:
            if at is not None and main.began_unix_ns:
                series = add_pauses(series, main.began_unix_ns, at.list_pauses())
            (files / "series.json").write_text(json.dumps(series.to_json()) + "\n")
        return self._hidden(ended)

    def _injector(self, planned: PlannedTrial, at: TrialServers | None, files: Path) -> Injector | None:
        """The prepared faults of a trial; None if the trial has no faults. Raises FaultError."""
        if not planned.variant.faults:
            return None
        assert at is not None, "validation requires servers for faults"
        site = at.site(files.parents[1] / undo.FILE)
        report = partial(append_fault, files / FAULTS)
        injector = Injector(site, planned.variant.faults, self.experiment.seed, planned.repeat, report)
        try:
            injector.prepare()
        except FaultError:
            raise
        except LoadstoneError as error:
            raise FaultError(f"faults: {error.args[0]}", error.hint) from error
        return injector

    def load(self, planned: PlannedTrial, files: Path) -> None:
        """Loads data that trials share on servers, unless it is already there. Raises LoadstoneError if the load
        fails."""
        directory = self.spaces.space_at(planned.variant.directory).empty_directory()
        self.attempt = uuid4().hex[:12]
        try:
            self.display.step("servers")
            at = self.servers.prepare(planned.variant, files / "servers.log", reuse=True)
            planned = replace(planned, variant=with_address(planned.variant, at))
            with self._run_hooks(planned, directory, files):
                for part in kind_of(planned.variant).phases(planned.variant, self.experiment):
                    if part.role == "prepare":
                        self._prepare(part, planned, directory, files, at)
        finally:
            datasets.remove(directory)

    def _hidden(self, result: TrialResult) -> TrialResult:
        """A copy of a result with the facts of the fleet and without secrets."""
        facts, requested = (
            {name: secrets.hide_secrets(value) if isinstance(value, str) else value for name, value in settings.items()}
            for settings in ({**self.fleet.facts, **result.facts}, result.requested)
        )
        notes = [
            replace(note, message=secrets.hide_secrets(note.message), hint=secrets.hide_secrets(note.hint))
            for note in result.notes
        ]
        return replace(result, facts=facts, requested=requested, notes=tuple(notes))

    @contextmanager
    def _run_hooks(self, planned: PlannedTrial, directory: Path, files: Path) -> Iterator[None]:
        """Runs the hooks before and after the trial. The hooks after it always run; the first error is raised."""
        variant, log = planned.variant, files / "hooks.log"
        names = {**variant.config, "trial": planned.trial, "repeat": planned.repeat, "directory": str(directory)}
        names["results"] = str(files)
        timeout = self._timeout()
        try:
            hooks.run(variant.commands_before(names), "before", names, log, timeout)
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                timeout = min(timeout, LEAVING_SECONDS)
            with suppress(hooks.HookError):
                hooks.run(variant.commands_after(names), "after", names, log, timeout)
            raise
        hooks.run(variant.commands_after(names), "after", names, log, timeout)

    def _perform(
        self,
        phase: Phase,
        planned: PlannedTrial,
        directory: Path,
        files: Path,
        at: TrialServers | None,
        injector: Injector | None,
    ) -> PhaseResult | None:
        variant = planned.variant
        if phase.role == "measure":
            return self._measure(phase, planned, directory, files, at, injector)
        if phase.role == "warmup":
            assert isinstance(phase, ObservedCommand), "engines warm up within their measured phase"
            self.display.step("warm up")
            phase_result.parse_output(phase, self._command(phase, planned, directory, files, at, None))
            return None
        if phase.role == "verify":
            settled = list[Value]()
            if isinstance(phase, ObservedCommand) and phase.settled and at is not None:
                self.display.step("settle")
                if waited := at.await_replication():
                    settled.append(Value(f"{phase.name}.settle", waited.seconds * 1e9, "ns", 1))
                    settled.append(Value(f"{phase.name}.settled", int(waited.backlog is None), "", 1))
            self.display.step("verify")
            if isinstance(phase, ObservedCommand):
                ended = self._command(phase, planned, directory, files, at, None, injector)
                run = phase_result.parse_output(phase, ended)
                return PhaseResult(phase.role, [*run.figures_with_bounds(), *settled], run.facts, run.notes, run.end)
            runs = self._run(phase, variant.placement, directory, self._seed(planned), files, None)
            failure = kind_of(variant).failure(runs)
            notes = [*phase_result.notes_of(runs), *([failure] if failure else [])]
            end = "failed" if failure else phase_result.end_of(runs)
            return PhaseResult(phase.role, phase_result.figures_of(phase, variant, runs), notes=notes, end=end)
        return self._prepare(phase, planned, directory, files, at)

    def _prepare(
        self, phase: Phase, planned: PlannedTrial, directory: Path, files: Path, at: TrialServers | None
    ) -> PhaseResult | None:
        """Loads the data, or copies previously loaded data; None if this trial loaded nothing."""
        variant = planned.variant
        if at is not None and not at.must_load:
            return None
        settle = self.experiment.measure.settle
        reuse = self.experiment.load.reuse
        if not reuse or describe_engine().is_networked(variant.store):
            seed = order.load_seed(self.experiment.seed) if reuse else self._seed(planned)
            loaded = self._load(phase, planned, directory, seed, files, at)
            self.servers.record_load(variant)
            if settle and at is not None:
                self.display.step("settle")
                at.settle()
            return loaded
        space = self.spaces.space_at(variant.directory)
        original = space.copy_source(variant.load_key)
        if not original.exists():
            part = original.with_suffix(".part")
            datasets.remove(part)
            # A hook may have mounted a file system over the directory.
            part.mkdir(parents=True)
            self._load(phase, planned, part, order.load_seed(self.experiment.seed), files, at)
            part.rename(original)
        self.display.step("copy")
        space.copy(original, directory)
        return None

    def _load(
        self, part: Phase, planned: PlannedTrial, directory: Path, seed: int, files: Path, at: TrialServers | None
    ) -> PhaseResult:
        """Loads all data with engines or a command. Raises EngineError if the load fails."""
        self.display.step("load")
        if isinstance(part, ObservedCommand):
            ended = self._command(part, planned, directory, files, at, None)
            if isinstance(ended, Ended) and ended.status:
                raise command.failure(part.name, ended)
            figures = phase_result.parse_output(part, ended).figures_with_bounds()
            return PhaseResult(part.role, figures, notes=[*phase_result.survivor_notes(part, ended)])
        loads = self._complete(part, planned.variant.placement, directory, seed, files)
        return PhaseResult(part.role, phase_result.figures_of(part, planned.variant, loads))

    def _complete(
        self, launch: EngineLaunch, placement: str, directory: Path, seed: int, files: Path
    ) -> list[Finished]:
        """Loads all data with engines. Raises EngineError if any is missing, because the trial needs all of it."""
        loads = self._run(launch, placement, directory, seed, files, None)
        for load in loads:
            summary = load.result.summary
            if load.lost:
                message = f"{load.lost} of {load.engines} load generators exited during the load without a result"
                last = load.result.notes[-1]
                # If a host was lost, the exit status is negative, and the trial is repeated.
                raise EngineError(f"{message}: {last.message}", last.hint, load.exit_status)
            if summary.end != "done":
                reason = f": {summary.reason}" if summary.reason else ""
                raise EngineError(f"the load ended early{reason}", phase_result.ENDED_EARLY_HINT, 1)
            if summary.unclosed:
                raise EngineError(errors.message_on_unclosed(summary.unclosed, "of the load "), errors.UNCLOSED_HINT, 1)
        return loads

    def _measure(
        self,
        phase: Phase,
        planned: PlannedTrial,
        directory: Path,
        files: Path,
        at: TrialServers | None,
        injector: Injector | None,
    ) -> PhaseResult:
        """Runs the measured phase, while observing the host and injecting faults; flushes the file system before and
        after.

        All faults have been lifted when this function returns.
        """
        variant = planned.variant
        self.display.step("flush")
        data = directory if describe_engine().keeps_files(variant.store) else None
        if isinstance(phase, ObservedCommand):
            data = None if variant.is_remote else phase.place(directory)
        if at is not None:
            data = at.stack.data
        if isinstance(phase, EngineLaunch) and phase.cold:
            page_cache.drop_cache([directory] if at is None else at.stack.directories)
        with Watch(data, files / "observed.jsonl", at.begin() if at else None) as watch:
            self.display.step("measure")
            if isinstance(phase, EngineLaunch):
                with injector or nullcontext():
                    where = (variant.placement, directory, self._seed(planned), files, watch, injector)
                    runs = self._run(phase, *where, is_steady=kind_of(variant).steady)
            else:
                ended = self._command(phase, planned, directory, files, at, watch)
        if at is not None:
            at.end()
        server_facts, processors = at.facts() if at else {}, self.fleet.facts.get("cpus")
        if isinstance(phase, ObservedCommand):
            return phase_result.command_result(phase, ended, files, watch, server_facts)
        return phase_result.engine_result(phase, variant, runs, watch, server_facts, processors)

    def _run(
        self,
        launch: EngineLaunch,
        placement: str,
        directory: Path,
        seed: int,
        files: Path,
        watch: Watch | None,
        injector: Injector | None = None,
        *,
        is_steady: bool = False,
    ) -> list[Finished]:
        """Runs the launches of a phase, and stops at the first failure."""
        stages, runs = launch.list_stages(directory, seed), list[Finished]()
        is_started = complete = False
        try:
            for name, spec in stages.specs:
                engines = 1 if name in stages.alone else self._engines(placement)
                # Hosts may finish at different times if the work has a fixed size, because its figures include each
                # host's throughput and the first and the last completion.
                if launch.role == "measure" and is_steady:
                    self._refuse_race(spec, placement, engines)
                where = (watch, files, self.display, self.fleet)
                runs.append(phase.run(spec, name, *where, engines, self._timeout(), placement, injector))
                if runs[-1].lost or runs[-1].result.summary.end != "done":
                    return runs
                is_started = True
            complete = True
        finally:
            for name, spec in stages.after_failure if is_started and not complete else ():
                # Only the first error is reported. The next trial tries again to remove the remaining files.
                with suppress(LoadstoneError):
                    phase.run(spec, name, None, files, self.display, self.fleet, 1, LEAVING_SECONDS, placement)
        return runs

    def _engines(self, placement: str) -> int:
        """The number of engines of a trial."""
        settings = self.experiment.fleet
        return settings.engines if settings.per_host is None else settings.per_host * len(self.fleet.hosts(placement))

    def _refuse_race(self, spec: Spec, placement: str, engines: int) -> None:
        """Raises EngineError for a closed loop with a fixed number of operations on several hosts, because the hosts
        would finish at different times."""
        hosts = min(len(self.fleet.hosts(placement)), engines)
        if hosts > 1 and spec["pace"]["mode"] == "closed" and spec["until"].get("operations") is not None:
            message = f"a closed loop limited by a number of operations is a race between {hosts} hosts"
            raise EngineError(f"{message}: the slowest host determines the end", "limit it by time, or set a rate", 2)

    def _command(
        self,
        part: ObservedCommand,
        planned: PlannedTrial,
        directory: Path,
        files: Path,
        at: TrialServers | None,
        watch: Watch | None,
        injector: Injector | None = None,
    ) -> Ended | HostsEnded:
        """Runs a command, whose templates may use all names that are known for the trial."""
        names: dict[str, Scalar] = {
            **(at.names() if at else {}),
            **self.experiment.template_values(planned.variant.config),
            "trial": planned.trial,
            "repeat": planned.repeat,
            "directory": str(directory),
            "results": str(files.absolute()),
            "seed": self._seed(planned),
            "host_index": 0,
            "host_count": 1,
        }
        if injector is not None:
            names["crashes_unix_ns"] = " ".join(map(str, injector.crashes_unix_ns))
        context = CommandContext(files.absolute(), directory, names, at.client_environment() if at else {})
        if planned.variant.is_remote:
            parent = planned.variant.directory if self.experiment.directory else HOST_DIRECTORY
            own = replace(context, directory=parent / f"{datasets.PREFIX}{self.attempt}")
            hosts = self._hosts_of_command(part, planned.variant)
            where = (self.fleet, planned.variant.placement, hosts)
            return command.run_on_hosts(part, own, *where, self.display, watch, self._timeout())
        return command.run(part, context, self.display, watch, self._timeout())

    def _hosts_of_command(self, part: ObservedCommand, variant: Variant) -> int:
        """The number of hosts that run a command. Raises EngineError if there are fewer hosts than `fleet.engines`."""
        hosts, engines = len(self.fleet.hosts(variant.placement)), self._engines(variant.placement)
        if engines > hosts:
            message = (
                f"fleet.engines is {engines}, but placement {variant.placement} has {units.count_noun(hosts, 'host')}"
            )
            raise EngineError(message, "write `per_host: 1`: each host runs the command once", 2)
        # Servers hold the data of the load for all hosts.
        return 1 if part.role == "prepare" and variant.servers is not None else engines

    def _seed(self, planned: PlannedTrial) -> int:
        return order.trial_seed(self.experiment.seed, planned.repeat)

    def _timeout(self) -> float:
        measure = self.experiment.measure
        measuring = self.experiment.warmup_seconds + (measure.duration or 0)
        return self.experiment.timeout or measuring + PATIENCE_SECONDS


def lift_notes(faults: Iterable[FaultRecord]) -> Iterator[Note]:
    """A note on each fault that could not be lifted: the probable cause of later failures."""
    for fault in faults:
        if reason := fault.unverified.get("lifted"):
            victims = units.list_items([*fault.servers])
            hint = "see servers.log of the trial; `loadstone systems down` undoes the fault"
            yield Note("faults", f"{fault.noun} of {victims} was not lifted: {reason}", hint)


def append_fault(path: Path, number: int, record: FaultRecord) -> None:
    """Appends the record of a fault after a step, for readers during the trial.

    The file is not synced, because a sync would disturb the measured file system; values.jsonl has the final record.
    """
    with suppress(OSError), path.open("a") as file:
        file.write(json.dumps({"fault": number, **record.to_json()}) + "\n")


def recovery_options(planned: PlannedTrial) -> fault_figures.Options:
    """The conditions under which the service counts as recovered after the first fault."""
    for fault in planned.variant.faults[:1]:
        window_ns, hold_ns = round(fault.window_s * 1e9), round(fault.hold_s * 1e9)
        return fault_figures.Options(share=fault.share, window_ns=window_ns, hold_ns=hold_ns)
    return fault_figures.DEFAULTS


def exit_notes(at: TrialServers | None) -> list[Note]:
    """A note for each server that has exited since the trial began."""
    return [*at.exit_notes()] if at else []


def add_amplification(measured: dict[str, Value]) -> dict[str, Value]:
    """Adds the write amplification: bytes written to the device per byte stored by operations."""
    stored, device = measured.get("stored"), measured.get("device.written_per_operation")
    operations = measured.get("operations")
    if stored and device and operations and stored.value and operations.value:
        operation_bytes = stored.value / operations.value
        measured["write_amplification"] = Value("write_amplification", device.value / operation_bytes, "×", stored.n)
    return measured


def record_hooks(experiment: Experiment, system: str) -> dict[str, str]:
    """The hooks of a system as settings, as they are written in the file; `none` if there are none."""
    return {f"hooks.{when}": "; ".join(commands) or "none" for when, commands in experiment.hooks_of(system).items()}
