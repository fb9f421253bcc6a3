"""Runs an experiment: its trials in random order, block by block, until there are enough repeats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from loadstone.errors import LoadstoneError
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.plan.plan import Plan, PlannedTrial
from loadstone.experiment.plan.required_servers import StartedSystems
from loadstone.fleet.interface import Fleet
from loadstone.fleet.local import Local
from loadstone.fleet.placement import NEXT_TO_SERVERS, select_hosts, select_servers
from loadstone.fleet.ray import RayTransport
from loadstone.fleet.remote import Remote
from loadstone.format import units
from loadstone.judge.judgement import VariantKey
from loadstone.results.folder import Folder
from loadstone.results.result_set import deciding_metrics, variant_key
from loadstone.results.trial_result import TrialResult
from loadstone.runner.attempts import Attempts, abandonment_error, set_aside_message
from loadstone.runner.datasets import DataSpaces
from loadstone.runner.pilot import Pilot
from loadstone.runner.progress import Display, RunProgress
from loadstone.runner.server_pool import RunServers
from loadstone.runner.trial import Conductor
from loadstone.statistics import stopping
from loadstone.systems.base import undo

# The run stops after this number of consecutive failures, if they cover all variants or FAILING_VARIANTS_MAX of them.
FAILURES_MAX = 3
# Why a run stops: the messages for the reasons that `stopping` returns.
STOPS = {
    "narrow": "every interval is as narrow as `repeats.until` requires",
    "at-most": "the repeats have reached `repeats.at_most`",
    "at-least": "all repeats are done",
}


@dataclass
class ExperimentRun:
    """A new or resumed run, whose results go to a folder."""

    experiment: Experiment
    plan: Plan
    folder: Folder
    display: Display
    seconds_each: float
    # Whether excluded variants are tried again.
    retry_failed: bool = False
    attempts: Attempts = field(init=False)

    def __post_init__(self) -> None:
        self.attempts = Attempts(self.folder, self.display)

    @property
    def done(self) -> dict[str, TrialResult]:
        """The completed trials."""
        return self.attempts.done

    def go(self) -> str:
        """Runs every missing trial; returns the reason why the run stopped. Raises LoadstoneError if it cannot
        continue."""
        self.attempts.restore(self.retry_failed)
        repeats = self.experiment.repeats
        planned = set(self.folder.blocks)
        with self.conducting() as conductor:
            self.warm_up(conductor)
            trials = repeats.at_least * len(self.plan.variants)
            progress = RunProgress(self.folder.name, trials, len(self.done), self.seconds_each)
            self.display.plan(progress)
            shared = False
            for number, block in enumerate(self.plan.plan_blocks(), 1):
                # Once begun, a block is completed, because a missing trial would make its variant invalid.
                if number > repeats.at_least and number not in planned and (reason := self.enough()):
                    return reason
                if number not in planned:
                    self.folder.record_block(number, {planned.trial: planned.variant.config for planned in block})
                progress.trials = max(progress.trials, number * len(self.plan.variants))
                for trial in block:
                    if trial.trial not in self.done and not self.attempts.set_aside(variant_key(trial.variant.config)):
                        if not shared:
                            self.load_shared(conductor)
                            shared = True
                        self.trial(conductor, trial)
                        progress.finish()
        return self.enough() or self.stop_message("at-most")

    def warm_up(self, conductor: Conductor) -> None:
        """Determines the warm-up with the pilot block, if there is one."""
        if self.experiment.pilot:
            pilot = Pilot(self.experiment, self.plan, self.folder, self.display, self.seconds_each)
            result = pilot.find(conductor, self.retry_failed)
            self.seconds_each = result.get("trial_seconds") or self.seconds_each
            measure = self.experiment.measure.model_copy(update={"warmup": result["warmup_seconds"]})
            self.experiment = self.experiment.model_copy(update={"measure": measure})
            conductor.experiment = self.experiment

    def load_shared(self, conductor: Conductor) -> None:
        """Loads data that trials share on servers, so that no trial in the first block runs right after the load of
        another trial."""
        variants = self.plan.variants
        servers = [planned.servers and planned.servers.how for planned in variants]
        if not self.experiment.load.reuse or any(how != servers[0] for how in servers):
            return
        shared = [load for load in variants if load.data.loaded and load.data.place]
        for key, planned in {load.load_key: load for load in shared}.items():
            files, place = self.folder.path / "loads" / key, planned.data.place
            files.mkdir(parents=True, exist_ok=True)
            self.display.trial(f"load {place}")
            try:
                conductor.load(PlannedTrial(f"load-{key}", planned, 0, 0), files)
            except LoadstoneError as error:
                again = "each trial that uses this data will load it again"
                self.display.say(f"loading {place} failed: {error.args[0]}; {again}", bad=True)

    @contextmanager
    def conducting(self) -> Iterator[Conductor]:
        """Yields the conductor of the trials; cleans up data and servers at the end. Raises SystemsError."""
        # Undoes faults that a killed lab left on the user's servers.
        undo.carry_out_all(self.folder.path / "trials" / undo.FILE, self.display.say)
        with (
            open_fleet(self.experiment, self.plan) as fleet,
            DataSpaces(self.folder.identity) as spaces,
            RunServers(open_spread=fleet.open_system) as servers,
        ):
            if hosts := fleet.describe():
                self.folder.record_hosts(hosts)
            yield Conductor(self.experiment, spaces, self.display, fleet, servers)

    def trial(self, conductor: Conductor, planned: PlannedTrial) -> None:
        """Runs and records a trial. Raises LoadstoneError after too many consecutive failures."""
        self.display.trial(planned.trial)
        key = variant_key(planned.variant.config)
        result = self._attempt(conductor, planned)
        # A lost host ended the attempt on all hosts, so all results of the attempt are discarded.
        while result.end == "lost" and self.experiment.fleet.on != "local" and not self.attempts.set_aside(key):
            result = self._attempt(conductor, planned)
        if result.end == "done":
            return
        failing = self.attempts.failing
        if len(failing) >= FAILURES_MAX and len(set(failing)) > 1 and self.attempts.all_fail(len(self.plan.variants)):
            raise abandonment_error(f"{len(failing)} consecutive trials failed", result, resumable=bool(self.done))
        if self.attempts.set_aside(key):
            self.display.say(set_aside_message(key), bad=True)

    def _attempt(self, conductor: Conductor, planned: PlannedTrial) -> TrialResult:
        result = self.attempts.make(conductor, planned, order=planned.order)
        self.display.say(line(result), bad=result.end != "done")
        return result

    def enough(self) -> str | None:
        """The reason why no more repeats are needed; None if more are needed."""
        repeats = self.experiment.repeats
        # An excluded variant would never have enough repeats.
        samples = [sample for sample in self.samples() if not self.attempts.set_aside(sample[0])]
        limits = None if repeats.until is None else [until for _, until, _ in samples]
        reason = stopping.stopping_reason(
            [figures for *_, figures in samples], repeats.at_least, repeats.at_most, limits
        )
        return None if reason is None else self.stop_message(reason)

    def stop_message(self, reason: stopping.Reason) -> str:
        """The message for a reason, which also states how many variants have no figure."""
        done, every = {variant_key(trial.config) for trial in self.done.values()}, len(self.plan.variants)
        lacking = sum(variant_key(variant.config) not in done for variant in self.plan.variants)
        have = "has" if lacking == 1 else "have"
        variants = units.count_noun(every, "variant")
        return STOPS[reason] + (f", but {lacking} of {variants} {have} no figure" if lacking else "")

    def samples(self) -> list[tuple[VariantKey, float, list[float]]]:
        """For each variant and each figure that decides when there are enough repeats: the variant, the required width
        of the interval as a share of the figure, and the figure in each repeat.

        Lower bounds are excluded: an interval of lower bounds would look narrow, although the true width is unknown.
        """
        trials: dict[VariantKey, list[TrialResult]] = {}
        for trial in self.done.values():
            trials.setdefault(variant_key(trial.config), []).append(trial)
        until = self.experiment.repeats.until
        if until is None:
            # Only the number of repeats matters.
            return [(key, 0.0, [0.0] * len(results)) for key, results in trials.items()]
        samples = []
        for key, results in trials.items():
            for metric, share in deciding_metrics(results, self.experiment.compare.metrics, until).items():
                known = (trial.values.get(metric) for trial in results)
                figures = [value.value for value in known if value is not None and value.bound is None]
                samples.append((key, share, figures))
        return samples


@contextmanager
def open_fleet(experiment: Experiment, plan: Plan) -> Iterator[Fleet]:
    """The fleet of an experiment, with its hosts fixed at the start. Raises LoadstoneError if there are too few."""
    settings = experiment.fleet
    if settings.on == "local":
        yield Local()
        return
    transport = RayTransport(settings.address)
    try:
        labels = settings.hosts.clients.label, settings.hosts.servers.label
        placements = dict.fromkeys(variant.placement for variant in plan.variants)
        nodes = nodes_of(plan)
        servers = select_servers(transport.hosts, labels[1], max(nodes, default=0))
        groups = {placement: select_hosts(transport.hosts, placement, *labels) for placement in placements}
        if NEXT_TO_SERVERS in groups and nodes:
            if len(nodes) > 1:
                listed = ", ".join(map(str, sorted(nodes)))
                message = f"placement {NEXT_TO_SERVERS} needs a single number of nodes, got {listed}"
                raise LoadstoneError(message, "vary the number of nodes in a separate experiment")
            groups[NEXT_TO_SERVERS] = servers
        yield Remote(transport, groups, servers=servers)
    finally:
        transport.close()


def nodes_of(plan: Plan) -> set[int]:
    """The distinct node counts of the systems that run on hosts of the fleet."""
    hows = [variant.servers.how for variant in plan.variants if variant.servers]
    return {how.system.nodes for how in hows if isinstance(how, StartedSystems) and how.system.on_hosts}


def line(result: TrialResult) -> str:
    """A one-line summary of a trial."""
    throughput, p99 = result.values.get("throughput"), result.values.get("all.p99")
    if throughput is None and result.end == "done" and (time := result.value("time")):
        return f"✓ {result.trial}: {units.format_duration(time)}"
    if throughput is None:
        note = result.notes[-1].message if result.notes else ""
        return f"✗ {result.trial}: {result.end}{': ' if note else ''}{note}"
    speed = units.format_rate if throughput.unit == "op/s" else units.format_bandwidth
    parts = [
        speed(throughput.value),
        f"p99 {units.format_bound(units.format_duration(p99.value), p99.bound)}" if p99 else "",
    ]
    errors = result.value("errors") or 0
    parts.append(units.count_noun(round(errors), "error") if errors else "")
    mark = "✓" if result.end == "done" else f"✗ {result.end}"
    return f"{mark} {result.trial}: {', '.join(part for part in parts if part)}"
