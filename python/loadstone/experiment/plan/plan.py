"""A plan: the variants of an experiment, and its trials block by block.

plan_experiment(experiment).plan_blocks()  # Each block has a trial of every variant, in random order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from loadstone.experiment.kind import KINDS, SHARED, Data
from loadstone.experiment.model import template
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import Arrival, Durability, Scalar
from loadstone.experiment.model.vary import distinct_values, list_points
from loadstone.experiment.plan import order
from loadstone.experiment.plan.faults import PlannedFault, plan_faults
from loadstone.experiment.plan.required_servers import VariantServers, resolve_servers
from loadstone.experiment.plan.stages import plan_stages
from loadstone.results.stage import Stage


@dataclass(frozen=True, slots=True)
class Variant:
    """One point of the experiment with all values filled in: plain data that all repeats share."""

    # Each dimension's value, in the order of the file.
    config: Mapping[str, Scalar]
    system: str
    store: str
    store_properties: Mapping[str, str]
    # The workload kind, and its keys.
    kind: str
    work: Any
    clients: int
    rate: float | None
    # Number of operations in the measured window; None if it has a duration.
    operations: int | None
    arrival: Arrival
    durability: Durability
    directory: Path
    # Commands in which names remain only if their values are not known before run time.
    hooks_before: tuple[str, ...]
    hooks_after: tuple[str, ...]
    # Variants with equal keys load equal data.
    load_key: str
    data: Data
    # The part of a trial's name that describes the variant.
    slug: str
    # For the load: the number of clients, and properties that override the store's properties.
    load_clients: int
    load_properties: Mapping[str, str]
    # The servers; None if the store has no servers, or the file does not name servers.
    servers: VariantServers | None = None
    # The hosts for the engines: `apart`, `beside`, or a label.
    placement: str = "apart"
    # Whether other hosts do the work.
    is_remote: bool = False
    faults: tuple[PlannedFault, ...] = ()
    # The stages of a changing rate; empty for a constant rate.
    stages: tuple[Stage, ...] = ()

    def commands_before(self, names: Mapping[str, Scalar]) -> list[str]:
        """The commands before a trial: the experiment's, then the system's."""
        return [template.render_template(command, names, for_shell=True) for command in self.hooks_before]

    def commands_after(self, names: Mapping[str, Scalar]) -> list[str]:
        """The commands after a trial: the system's, then the experiment's."""
        return [template.render_template(command, names, for_shell=True) for command in self.hooks_after]

    @property
    def loading(self) -> Variant:
        """A copy of the variant, with the number of clients and the properties for the load phase."""
        own = {**self.store_properties, **self.load_properties}
        return replace(self, clients=self.load_clients, store_properties=own)


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial of the plan: one variant in one block."""

    # The name of the trial, which is unique in the run and safe as a file name.
    trial: str
    variant: Variant
    # The number of the repeat, starting at 1, which is also the number of the block.
    repeat: int
    # The position of the trial in the whole run, starting at 0.
    order: int


@dataclass(frozen=True)
class Plan:
    """An experiment's variants."""

    experiment: Experiment
    variants: tuple[Variant, ...]

    @property
    def trials_least(self) -> int:
        """The smallest number of trials."""
        return len(self.variants) * self.experiment.repeats.at_least

    @property
    def trials_most(self) -> int:
        """The number of trials if the intervals remain wide."""
        return len(self.variants) * repeats_most(self.experiment)

    @cached_property
    def keys(self) -> list[str]:
        """The keys of the variants, for the draw of their order."""
        return [order.draw_key(variant.config) for variant in self.variants]

    def plan_blocks(self, seed: int | None = None) -> Iterator[tuple[PlannedTrial, ...]]:
        """Yields blocks, each with one repeat of every variant. By default, the seed is the experiment's seed."""
        seed = self.experiment.seed if seed is None else seed
        count = len(self.variants)
        digits = max(order.DIGITS_MIN, len(str(self.trials_most - 1)))
        for repeat in range(1, repeats_most(self.experiment) + 1):
            first = (repeat - 1) * count
            yield tuple(
                PlannedTrial(
                    order.trial_name(first + i, digits, self.variants[index].slug, repeat),
                    self.variants[index],
                    repeat,
                    first + i,
                )
                for i, index in enumerate(order.draw_order(self.keys, seed, repeat))
            )


def repeats_most(experiment: Experiment) -> int:
    """The maximum number of repeats."""
    return experiment.repeats.at_most or experiment.repeats.at_least


def plan_experiment(experiment: Experiment) -> Plan:
    """The plan of a loaded experiment. Raises OSError if a workload file has been removed since it was loaded."""
    planned = list_points(experiment.vary)
    varied = [name for name, values in distinct_values(experiment.vary).items() if len(values) > 1] or ["system"]
    if (find := experiment.find) is not None:
        # Each search has one variant, at its first load; `Builder` creates the variants of other loads.
        varied.append(find.over)
        planned = [{**point, find.over: scalar_of(float(getattr(find, "from")))} for point in planned]
    builder = Builder(experiment, varied)
    return Plan(experiment, tuple(builder.build_variant(point) for point in planned))


def scalar_of(load: float) -> int | float:
    """A load as it is written in a config: whole numbers as integers."""
    return int(load) if load.is_integer() else load


class Builder:
    """Creates variants; parts that several variants share are created only once."""

    def __init__(self, experiment: Experiment, varied: list[str]) -> None:
        self._experiment = experiment
        self._varied = varied
        # The rendered workloads, by path and values.
        self._works: dict[tuple[object, ...], tuple[str, Any, Data]] = {}

    def build_variant(self, point: Mapping[str, Scalar]) -> Variant:
        """The variant of a point."""
        experiment = self._experiment
        names = experiment.template_values(point)
        name = str(point["system"])
        system = experiment.systems[name]
        render = partial(template.render_template, values=names)
        before, after = (
            tuple(template.render_partly(command, names) for command in commands)
            for commands in experiment.hooks_of(name).values()
        )
        rate = names.get("rate")
        durability = str(names["durability"])
        kind, work, data = self._resolve_work(point, names)
        own = {key: render(text) for key, text in system.properties.items()}
        loading = {key: render(text) for key, text in experiment.load.properties.items()}
        directory = render(experiment.directory or ".")
        needed = resolve_servers(system, names, data.table, render, on_hosts=experiment.fleet.on != "local")
        servers_key = [] if needed is None else [needed.key]
        clients, operations = names["clients"], names.get("operations")
        assert isinstance(clients, int), "checked by validation"
        assert operations is None or isinstance(operations, int), "checked by validation"
        return Variant(
            config=dict(point),
            system=name,
            store=system.store,
            store_properties=own,
            kind=kind,
            work=work,
            clients=clients,
            rate=None if rate is None else float(rate),
            operations=operations,
            arrival="poisson" if names["arrival"] == "poisson" else "uniform",
            durability="none" if durability == "none" else "device" if durability == "device" else "os",
            directory=Path.cwd() / directory,
            hooks_before=before,
            hooks_after=after,
            load_key=load_digest(
                system.store,
                {**own, **loading},
                durability,
                data.identity,
                directory,
                before,
                after,
                experiment.seed,
                *servers_key,
            ),
            data=data,
            slug=order.variant_slug(point, self._varied),
            load_clients=experiment.load.clients or clients,
            load_properties=loading,
            servers=needed,
            placement=str(names["placement"]),
            is_remote=experiment.fleet.on != "local",
            faults=plan_faults(experiment, render),
            stages=plan_stages(experiment, render),
        )

    def _resolve_work(self, point: Mapping[str, Scalar], names: Mapping[str, Scalar]) -> tuple[str, Any, Data]:
        """The workload kind at a point, its keys and its data, which variants with the same workload share."""
        path = self._experiment.workload_at(point)
        workload = self._experiment.all_workloads[path]
        (name,) = workload.kinds
        kind = KINDS[name]
        options = workload.keys_of_kind(name).model_dump(exclude_unset=True)
        literal = {key: options.pop(key) for key in kind.literal if key in options}
        commands = {key: options.pop(key) for key in kind.commands if key in options}
        # Commands may also contain names whose values are known only at run time.
        used = [names[word] for _, text in template.list_strings(options) for word in template.template_names(text)]
        used += [names.get(word, "") for text in commands.values() for word in template.template_names(text)]
        key = (path, *used)
        if key not in self._works:
            is_remote = self._experiment.fleet.on != "local"
            known = {word: value for word, value in names.items() if not (is_remote and word in SHARED)}
            keys = template.render_strings(options, partial(template.render_template, values=names)) | literal
            for command, text in commands.items():
                keys[command] = template.render_partly(text, known if command in kind.shared else names)
            work = kind.work(kind.keys.model_validate(keys), self._experiment)
            self._works[key] = name, work, kind.data(work)
        return self._works[key]


def load_digest(*parts: object) -> str:
    """A hash of everything that determines the loaded data.

    Hooks and the directory are included, because a command may create the volume for the data.
    """
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
