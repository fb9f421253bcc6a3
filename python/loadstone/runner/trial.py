"""A trial from end to end: servers, hooks, the phases of its kind of workload, and the result."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.engine import secrets
from loadstone.engine.describe import description
from loadstone.engine.events import Note
from loadstone.engine.trial import EngineError, Spec
from loadstone.experiment.kind import Phase, kind_of
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan.plan import PlannedTrial
from loadstone.fleet.fleet import Fleet
from loadstone.judge.checks import errors
from loadstone.results.trial_result import Scalar, TrialResult, values
from loadstone.results.value import Value
from loadstone.runner import datasets, figures, guarantees, hooks, phase
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
    """A phase that was run, and what was seen of the host meanwhile."""

    phase: Phase
    finished: Finished
    observed: tuple[Value, ...] = ()
    # Where the data were.
    facts: Mapping[str, Scalar] = field(default_factory=dict)


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
        try:
            self.shown.step("servers")
            at = self.servers.prepare(planned.variant, files / "servers.log", reuse=bool(self.experiment.load.reuse))
            planned = replace(planned, variant=completed(planned.variant, at))
            with self._hooked(planned, directory, files):
                kind = kind_of(self.experiment)
                phases = kind.phases(planned.variant, self.experiment)
                performed = [self._perform(each, planned, directory, files, at) for each in phases]
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
        variant = planned.variant
        done = [each for each in performed if each is not None]
        measured: list[Value] = []
        for each in done:
            one = each.finished
            measured += [*figures.figures(one.result, one.memory_max, each.phase.prefix), *each.observed]
            measured += kind.figures(each.phase, one.spec, one.result)
        # The last phase that is measured is the one that the facts, notes and course are of.
        last = [each for each in done if each.phase.measured][-1]
        run, summary = last.finished, last.finished.result.summary
        networked = description().networked(variant.store)
        if networked:
            measured += engine_share(measured, self.fleet.facts().get("cpus"))
        if run.engines > 1:
            measured += [Value("segments", run.engines, "segments", 1), Value("segments.lost", run.lost, "segments", 1)]
        told = at.facts() if at else {}
        ready = run.result.ready
        facts = {
            **{name: value for name, value in told.items() if name not in guarantees.ANSWERS},
            **ready.facts,
            **last.facts,
            "store": ready.store,
            **guarantees.kept(ready.durability, ready.how, ready.facts, told),
            "engine": ready.engine,
            "engines": run.engines,
            "profile": summary.profile,
            "networked": "yes" if networked else "no",
            **kind.facts(run.spec),
        }
        notes = [*died(at), *run.result.notes]
        if at is not None:
            notes += at.restless()
            measured += at.values()
            at.write(files / "servers.json")
        if summary.saturated_values:
            message = f"{summary.saturated_values:,} latencies were longer than a histogram holds, which has its most"
            notes.append(Note("saturated", message, "the highest percentiles and the maximum are lower bounds"))
        if summary.reason:
            notes.append(
                Note("incomplete", f"it ended early: {summary.reason}", "the message above comes from the store")
            )
        (files / "series.json").write_text(json.dumps(run.series.to_json()) + "\n")
        return self._result(
            planned,
            amplified(values(*measured)),
            start,
            end="lost" if run.lost else summary.end,
            notes=tuple(notes),
            facts=facts,
            statuses=figures.statuses(summary),
            loop=run.loop,
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
            clients=planned.variant.clients,
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
        if each.measured:
            return self._measure(each, planned, directory, files, at)
        prepared = self._prepare(each, planned, directory, files, at)
        return None if prepared is None else Performed(each, prepared)

    def _prepare(
        self, each: Phase, planned: PlannedTrial, directory: Path, files: Path, at: At | None
    ) -> Finished | None:
        """Makes the data, or copies those made for another trial; None when nothing had to be made."""
        variant = planned.variant
        if at is not None and not at.loads:
            return None
        settle = self.experiment.measure.settle
        reuse = self.experiment.load.reuse
        if not reuse or description().networked(variant.store):
            seed = self.experiment.seed % SEEDS if reuse else self._seed(planned)
            loaded = self._complete(each, each.spec(directory, seed), files)
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
            self._complete(each, each.spec(part, self.experiment.seed % SEEDS), files)
            part.rename(kept)
        self.shown.step("copy")
        space.copy(kept, directory)
        return None

    def _complete(self, each: Phase, spec: Spec, files: Path) -> Finished:
        """Makes all of the data. Raises EngineError where some are missing: no trial can do without."""
        load = self._run(each, spec, files, None)
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
        return load

    def _measure(self, each: Phase, planned: PlannedTrial, directory: Path, files: Path, at: At | None) -> Performed:
        """Measures, and watches the host meanwhile; the file system is flushed before and after."""
        spec = each.spec(directory, self._seed(planned))
        self.shown.step("flush")
        held = directory if description().keeps_files(planned.variant.store) else None
        if at is not None:
            held = at.data
        with Watch(held, files / "observed.jsonl", at.begin() if at else None) as watch:
            run = self._run(each, spec, files, watch)
        if at is not None:
            at.end()
        summary = run.result.summary
        observed = tuple(watch.values(summary.operations + summary.warmup_operations))
        return Performed(each, run, observed, watch.facts)

    def _run(self, each: Phase, spec: Spec, files: Path, watch: Watch | None) -> Finished:
        self.shown.step("measure" if each.measured else each.name)
        launch = Launch(self.fleet, self.experiment.fleet.engines, files, self.shown, self._timeout())
        return phase.run(launch, spec, each.name, watch)

    def _seed(self, planned: PlannedTrial) -> int:
        """Every variant of a block does the same operations; every block does others."""
        return (self.experiment.seed * 1_000_003 + planned.repeat) % SEEDS

    def _timeout(self) -> float:
        measure = self.experiment.measure
        own = self.experiment.warmup_seconds + (measure.duration or 0)
        return self.experiment.timeout or own + PATIENCE_SECONDS


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
