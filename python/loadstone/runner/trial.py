"""A trial from end to end: servers, hooks, the phases of its kind of workload, and the result."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.engine import secrets
from loadstone.engine.describe import description
from loadstone.engine.events import Note, Summary
from loadstone.engine.trial import EngineError
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Ended, EngineLaunch, Launched, ObservedCommand, Phase, Role, kind_of
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan.plan import PlannedTrial, Variant
from loadstone.fleet.fleet import Fleet
from loadstone.judge.checks import errors
from loadstone.observe import device
from loadstone.results import hlog
from loadstone.results.trial_result import Loop, Scalar, Series, TrialResult, values
from loadstone.results.value import Value
from loadstone.runner import command, datasets, figures, guarantees, hooks, phase
from loadstone.runner.phase import Finished, Launch
from loadstone.runner.progress import Display
from loadstone.runner.servers import At, RunServers, ServersError, completed
from loadstone.runner.watch import Watch

# What a trial that says nothing about its time may take at most, beside its own: loading, settling, closing.
PATIENCE_SECONDS = 3600.0
# What the hooks after a trial may take when the whole run is being left: nothing can interrupt them then.
LEAVING_SECONDS = 60.0
# What the engine takes.
SEEDS = 1 << 64


@dataclass(frozen=True)
class Performed:
    """A phase that was run, in the terms of results."""

    role: Role
    values: Sequence[Value]
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    end: str = "done"
    clients: int | None = None
    loop: Loop | None = None
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    series: Series | None = None


@dataclass
class Conductor:
    """Runs the trials of one experiment."""

    experiment: Experiment
    spaces: datasets.DataSpaces
    shown: Display
    fleet: Fleet
    servers: RunServers

    def conduct(self, planned: PlannedTrial, files: Path) -> TrialResult:
        """Runs a trial and writes its files below `files`.

        An engine that ends without a result, or a hook that fails, makes a result that says so. Raises LoadstoneError
        when what every trial needs is not there.
        """
        start = time.time_ns()
        space = self.spaces.at(planned.variant.directory)
        directory = space.fresh()
        at: At | None = None
        performed: list[Performed] = []
        try:
            self.shown.step("servers")
            at = self.servers.prepare(planned.variant, files / "servers.log", reuse=bool(self.experiment.load.reuse))
            planned = replace(planned, variant=completed(planned.variant, at))
            with self._hooked(planned, directory, files):
                phases = kind_of(planned.variant).phases(planned.variant, self.experiment)
                for each in phases:
                    if done := self._perform(each, planned, directory, files, at):
                        performed.append(done)
                        if done.end != "done":
                            break
        except EngineError as error:
            end = "lost" if error.status < 0 else "failed"
            note = Note("lost-segment" if error.status < 0 else "failed", str(error.args[0]), error.hint)
            return self._result(planned, {}, start, end=end, notes=(*died(at), note))
        except (hooks.HookError, ServersError) as error:
            note = Note("hook" if isinstance(error, hooks.HookError) else "servers", str(error.args[0]), error.hint)
            return self._result(planned, {}, start, end="failed", notes=(*died(at), note))
        finally:
            datasets.remove(directory)
        self.shown.step("tear down")
        measured = [value for each in performed for value in each.values]
        # What is measured is what the facts, notes and course are of.
        main = next(each for each in performed if each.role == "measure")
        notes = [*died(at), *(note for each in performed for note in each.notes)]
        if at is not None:
            notes += at.restless()
            measured += at.values()
            at.write(files / "servers.json")
        if main.series is not None:
            (files / "series.json").write_text(json.dumps(main.series.to_json()) + "\n")
        return self._result(
            planned,
            amplified(values(*measured)),
            start,
            clients=main.clients,
            end=next((each.end for each in performed if each.end != "done"), "done"),
            notes=tuple(notes),
            facts=main.facts,
            statuses=main.statuses,
            loop=main.loop,
        )

    def _result(self, planned: PlannedTrial, measured: dict[str, Value], start: int, **more: object) -> TrialResult:
        facts = {**self.fleet.facts(), **dict(more.pop("facts", {}))}  # type: ignore[call-overload]
        facts = {name: secrets.hidden(value) if isinstance(value, str) else value for name, value in facts.items()}
        notes: tuple[Note, ...] = more.pop("notes", ())  # type: ignore[assignment]
        notes = tuple(
            replace(each, message=secrets.hidden(each.message), hint=secrets.hidden(each.hint)) for each in notes
        )
        return TrialResult(
            trial=planned.trial,
            config=planned.variant.config,
            repeat=planned.repeat,
            values=measured,
            clients=more.pop("clients", planned.variant.clients),  # type: ignore[arg-type]
            facts=facts,
            order=planned.order,
            start_unix_ns=start,
            notes=notes,
            **more,  # type: ignore[arg-type]
        )

    @contextmanager
    def _hooked(self, planned: PlannedTrial, directory: Path, files: Path) -> Iterator[None]:
        """The hooks before; those after run however the trial ends, and what ended it first is what is raised."""
        variant, log = planned.variant, files / "hooks.log"
        names = {**variant.config, "trial": planned.trial, "repeat": planned.repeat, "directory": str(directory)}
        names["results"] = str(files)
        timeout = self._timeout()
        try:
            hooks.run(variant.before(names), "before", names, log, timeout)
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                timeout = min(timeout, LEAVING_SECONDS)
            with suppress(hooks.HookError):
                hooks.run(variant.after(names), "after", names, log, timeout)
            raise
        hooks.run(variant.after(names), "after", names, log, timeout)

    def _perform(
        self, each: Phase, planned: PlannedTrial, directory: Path, files: Path, at: At | None
    ) -> Performed | None:
        variant = planned.variant
        if each.role == "measure":
            return self._measure(each, planned, directory, files, at)
        if each.role == "verify":
            self.shown.step("verify")
            if isinstance(each, ObservedCommand):
                return looked_at(each, command.run(each, directory, files, self.shown, None, self._timeout()))
            looked = self._run(each, directory, self._seed(planned), files, None)
            wrong = kind_of(variant).failure(launched(looked))
            notes = [*notes_of(looked), *([wrong] if wrong else [])]
            end = "failed" if wrong else end_of(looked)
            return Performed(each.role, figures_of(each, variant, looked), notes=notes, end=end)
        assert isinstance(each, EngineLaunch), "data are made by engines"
        prepared = self._prepare(each, planned, directory, files, at)
        return Performed(each.role, figures_of(each, variant, prepared)) if prepared else None

    def _prepare(
        self, each: EngineLaunch, planned: PlannedTrial, directory: Path, files: Path, at: At | None
    ) -> list[Finished]:
        """Makes the data, or copies those made for another trial; nothing came of it when nothing had to be made."""
        variant = planned.variant
        if at is not None and not at.loads:
            return []
        settle = self.experiment.measure.settle
        reuse = self.experiment.load.reuse
        if not reuse or description().networked(variant.store):
            seed = self.experiment.seed % SEEDS if reuse else self._seed(planned)
            loaded = self._complete(each, directory, seed, files)
            self.servers.loaded(variant)
            if settle and at is not None:
                self.shown.step("settle")
                at.settle()
            return loaded
        space = self.spaces.at(variant.directory)
        kept = space.loaded(variant.load_key)
        if not kept.exists():
            part = kept.with_suffix(".part")
            datasets.remove(part)
            # A hook may have put a file system over the directory.
            part.mkdir(parents=True)
            self._complete(each, part, self.experiment.seed % SEEDS, files)
            part.rename(kept)
        self.shown.step("copy")
        space.copy(kept, directory)
        return []

    def _complete(self, each: EngineLaunch, directory: Path, seed: int, files: Path) -> list[Finished]:
        """Makes all of the data. Raises EngineError where some are missing: no trial can do without."""
        self.shown.step("load")
        loads = self._run(each, directory, seed, files, None)
        for load in loads:
            summary = load.result.summary
            if load.lost:
                message = f"{load.lost} of {load.engines} engines ended during the load without a result"
                last = load.result.notes[-1]
                raise EngineError(f"{message}: {last.message}", last.hint, 1)
            if summary.end != "done":
                reason = f": {summary.reason}" if summary.reason else ""
                raise EngineError(f"the load ended early{reason}", "the message above comes from the store", 1)
            if summary.unclosed:
                raise EngineError(errors.unclosed(summary.unclosed, "of the load "), errors.UNCLOSED_HINT, 1)
        return loads

    def _measure(self, each: Phase, planned: PlannedTrial, directory: Path, files: Path, at: At | None) -> Performed:
        """Measures, and watches the host meanwhile; the file system is flushed before and after."""
        variant = planned.variant
        self.shown.step("flush")
        held = directory if isinstance(each, ObservedCommand) or description().keeps_files(variant.store) else None
        if at is not None:
            held = at.data
        if isinstance(each, EngineLaunch) and each.cold:
            device.drop_cache([directory] if at is None else at.directories)
        with Watch(held, files / "observed.jsonl", at.begin() if at else None) as watch:
            self.shown.step("measure")
            if isinstance(each, EngineLaunch):
                runs = self._run(each, directory, self._seed(planned), files, watch)
            else:
                ended = command.run(each, directory, files, self.shown, watch, self._timeout())
        if at is not None:
            at.end()
        if isinstance(each, ObservedCommand):
            return of_command(each, ended, files, watch)
        summaries = [run.result.summary for run in runs]
        observed = watch.values(sum(one.operations + one.warmup_operations for one in summaries))
        return self._of_engine(each, variant, runs, observed, watch.facts, at.facts() if at else {})

    def _of_engine(
        self,
        each: EngineLaunch,
        variant: Variant,
        runs: Sequence[Finished],
        observed: Iterable[Value],
        where: Mapping[str, Scalar],
        told: Mapping[str, Scalar],
    ) -> Performed:
        """What engines measured; `where` the data were, and what the servers have `told`."""
        # Of several stages the longest is what the course is of.
        run = max(runs, key=lambda each: each.result.summary.measured_ns)
        ready, lost = run.result.ready, sum(each.lost for each in runs)
        engines = max(each.engines for each in runs)
        networked = description().networked(variant.store)
        measured = [*figures_of(each, variant, runs), *observed]
        if networked:
            measured += engine_share(measured, self.fleet.facts().get("cpus"))
        if engines > 1:
            measured += [Value("segments", engines, "segments", 1), Value("segments.lost", lost, "segments", 1)]
        facts = {
            **{name: value for name, value in told.items() if name not in guarantees.ANSWERS},
            **ready.facts,
            **where,
            "store": ready.store,
            **guarantees.kept(ready.durability, ready.how, ready.facts, told),
            "engine": ready.engine,
            "engines": engines,
            "profile": run.result.summary.profile,
            "networked": "yes" if networked else "no",
            **kind_of(variant).facts(launched(runs)),
        }
        return Performed(
            each.role,
            measured,
            facts,
            notes_of(runs),
            "lost" if lost else end_of(runs),
            # Stages have no clients: the engine does the work itself.
            variant.clients if len(runs) == 1 else None,
            run.loop if len(runs) == 1 else None,
            figures.statuses(run.result.summary),
            run.series,
        )

    def _run(self, each: EngineLaunch, directory: Path, seed: int, files: Path, watch: Watch | None) -> list[Finished]:
        """Runs the launches of a phase, up to the first that does not end well."""
        stages, found = each.stages(directory, seed), list[Finished]()
        for name, spec in stages.specs:
            engines = 1 if name in stages.alone else self.experiment.fleet.engines
            launch = Launch(self.fleet, engines, files, self.shown, self._timeout())
            found.append(phase.run(launch, spec, name, watch))
            if found[-1].lost or found[-1].result.summary.end != "done":
                break
        return found

    def _seed(self, planned: PlannedTrial) -> int:
        """Every variant of a block does the same operations; every block does others."""
        return (self.experiment.seed * 1_000_003 + planned.repeat) % SEEDS

    def _timeout(self) -> float:
        measure = self.experiment.measure
        own = self.experiment.warmup_seconds + (measure.duration or 0)
        return self.experiment.timeout or own + PATIENCE_SECONDS


def figures_of(each: EngineLaunch, variant: Variant, runs: Sequence[Finished]) -> list[Value]:
    """The figures of a phase of engines; those of the kind of work come last, as they may say it better."""
    found: list[Value] = []
    for run in runs:
        found += figures.figures(run.result, run.memory_max, each.prefix if len(runs) == 1 else f"{run.name}.")
    return [*found, *kind_of(variant).figures(each, launched(runs))]


def launched(runs: Sequence[Finished]) -> list[Launched]:
    """Launches as a kind of work looks at them."""
    return [Launched(run.name, run.spec, run.result) for run in runs]


def end_of(runs: Sequence[Finished]) -> str:
    """How launches ended: as the first that did not end well."""
    return next((run.result.summary.end for run in runs if run.result.summary.end != "done"), "done")


def notes_of(runs: Sequence[Finished]) -> list[Note]:
    """What engines accuse themselves of, and why they ended early."""
    return [
        note
        for run in runs
        for note in (*run.result.notes, *saturated(run.result.summary), *ended_early(run.result.summary))
    ]


def of_command(each: ObservedCommand, ended: Ended, files: Path, watch: Watch) -> Performed:
    """What the output of a command says. Raises CommandError where it says nothing that can be read."""
    try:
        run = each.read(ended)
    except LoadstoneError as error:
        raise command.failure(each.name, ended, str(error.args[0])) from error
    measured = values(*run.figures())
    operations = measured.get("operations")
    notes = list(run.notes)
    if ended.status:
        failed = command.failure(each.name, ended)
        notes.append(Note("failed", str(failed.args[0]), failed.hint))
    hlog.write(files / f"{each.name}.hlog", run.histograms)
    return Performed(
        each.role,
        [*measured.values(), *watch.values(int(operations.value) if operations else 0)],
        {**watch.facts, **run.facts},
        notes,
        "failed" if ended.status else run.end,
        run.clients,
        run.loop,
        run.statuses,
        run.series,
    )


def looked_at(each: ObservedCommand, ended: Ended) -> Performed:
    """What a command found after the measurement. Raises CommandError where it says nothing that can be read."""
    try:
        run = each.read(ended)
    except LoadstoneError as error:
        raise command.failure(each.name, ended, str(error.args[0])) from error
    return Performed(each.role, run.figures(), run.facts, run.notes, run.end)


def saturated(summary: Summary) -> Iterator[Note]:
    """That latencies were too long for a histogram."""
    if summary.saturated_values:
        message = f"{summary.saturated_values:,} latencies were longer than a histogram holds, which has its most"
        yield Note("saturated", message, "the highest percentiles and the maximum are lower bounds")


def ended_early(summary: Summary) -> Iterator[Note]:
    """Why a phase did not do all that it was to do."""
    if summary.reason:
        yield Note("incomplete", f"it ended early: {summary.reason}", "the message above comes from the store")


def engine_share(measured: Iterable[Value], processors: Scalar | None) -> Iterator[Value]:
    """How much of the processors that it may use the engine used: with servers, it may be what limits the load."""
    used = next((value.value for value in measured if value.metric == "cpu.engine"), None)
    if used is not None and isinstance(processors, int | float) and processors > 0:
        yield Value("cpu.engine_share", used / processors, "share", 1)


def died(at: At | None) -> list[Note]:
    """A note for each server that has ended since the trial began."""
    return [*at.died()] if at else []


def amplified(measured: dict[str, Value]) -> dict[str, Value]:
    """Adds write amplification: bytes that reached the device for each byte that operations stored."""
    stored, device = measured.get("stored"), measured.get("device.written_per_operation")
    operations = measured.get("operations")
    if stored and device and operations and stored.value and operations.value:
        each = stored.value / operations.value
        measured["write_amplification"] = Value("write_amplification", device.value / each, "×", stored.n)
    return measured
