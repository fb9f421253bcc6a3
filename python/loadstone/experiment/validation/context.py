"""The shared state of validation: the experiment, its locations in the file, errors and warnings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.experiment.kind import KINDS
from loadstone.experiment.mistake import Mistake
from loadstone.experiment.model import template
from loadstone.experiment.model.experiment import Experiment, Workload
from loadstone.experiment.model.system import ATTACH_COMMANDS
from loadstone.experiment.model.values import Scalar
from loadstone.experiment.model.vary import Point
from loadstone.experiment.model.ycsb_properties import CHANGING_RATES
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.reading.path import format_path as written
from loadstone.experiment.reading.shape import Shaped
from loadstone.experiment.reading.tree import Node
from loadstone.format.suggestion import suggest_names
from loadstone.systems import registry
from loadstone.systems.registry import SERVED_BY

# Dimensions that override the key with the same name, without a template.
ACTING = ("system", "clients", "rate", "operations", "durability", "arrival", "placement")
# Names that every template may use in addition to the dimensions.
PREDEFINED = (*ACTING[:-1], "store")
# Names that only commands may use, because their values are known only at run time.
AT_RUN_TIME = ("directory", "trial", "repeat", "results")
# Further names that only commands of a workload may use: the address of servers.
ADDRESS = ("host", "hosts", "port", "table")
# Names that the commands of `attach` may use.
OF_SERVERS = ("host", "port", "table")
# The keys of the file whose strings are templates.
WITH_TEMPLATES = ("workload", "workloads", "load", "systems", "hooks", "directory", "faults", "rate")


@dataclass(frozen=True)
class Template:
    """A string that may contain names, with its path."""

    path: Keys
    text: str

    @property
    def system(self) -> str | None:
        """The system to which the string belongs, if any."""
        return str(self.path[1]) if self.path[0] == "systems" else None

    @property
    def later(self) -> tuple[str, ...]:
        """Further names that a command may use, because their values are known at run time."""
        if "hooks" in (self.path[0], *self.path[2:3]):
            return AT_RUN_TIME
        if self.is_command:
            return (*AT_RUN_TIME, "seed", "duration", "host_index", "host_count")
        return OF_SERVERS if self.path[2:3] == ("attach",) and self.path[-1] in ATTACH_COMMANDS else ()

    @property
    def is_command(self) -> bool:
        """Whether the string is a shell command of a workload."""
        kind = KINDS.get(str(self.path[-2])) if len(self.path) > 2 else None
        return kind is not None and str(self.path[0]).startswith("workload") and self.path[-1] in kind.commands


@dataclass
class Context(Shaped):
    """An experiment during validation. Checks fill in the defaults; without errors, the experiment is then complete."""

    # The directories in which files with relative paths are searched for: the experiment file's, then the current one.
    bases: tuple[Path, ...] = ()
    warnings: list[Mistake] = field(default_factory=list)
    dimensions: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)

    def add_mistake(self, path: Keys, message: str, hint: str) -> None:
        """Adds an error."""
        self.mistakes.append(Mistake(self.location_of(path), message, hint))

    def add_warning(self, path: Keys, message: str, hint: str) -> None:
        """Adds a warning."""
        self.warnings.append(Mistake(self.location_of(path), message, hint))

    def fill_in(self, **keys: object) -> None:
        """Sets keys of the experiment, for example to their defaults."""
        self.experiment = self.experiment.model_copy(update=keys)

    def complete_workload(self, path: Keys, workload: Workload) -> None:
        """Replaces a workload of the experiment, for example to fill in its defaults."""
        value = workload if path == ("workload",) else {**self.experiment.workloads, str(path[-1]): workload}
        self.fill_in(**{str(path[0]): value})

    def is_set(self, *path: str) -> bool:
        """Whether the file sets this key."""
        node: Node = self.tree
        for part in path:
            below = getattr(node, "entries", {}).get(part)
            if below is None or getattr(below, "value", below) is None:
                return False
            node = below
        return True

    def work_at(self, point: Mapping[str, Scalar]) -> tuple[Keys, Workload, str] | None:
        """The workload at a point: its path, its keys and its kind; None unless it has exactly one kind."""
        path = self.experiment.workload_at(point)
        workload = self.experiment.all_workloads.get(path)
        return (path, workload, workload.kinds[0]) if workload and len(workload.kinds) == 1 else None

    def changing_rates(self) -> Iterator[Keys]:
        """The paths of changing rates in workloads."""
        for entry in self.list_templates():
            if str(entry.path[0]).startswith("workload") and entry.path[-1] in CHANGING_RATES:
                yield entry.path

    def list_templates(self) -> Iterator[Template]:
        """Yields every valid string that may contain names."""
        for entry in all_templates(self.experiment):
            if self.is_valid(*entry.path):
                yield entry

    def can_render(self, entry: Template) -> bool:
        """Whether a template and the values of its names are valid."""
        return self.is_valid(*entry.path) and bool(self.points or not template.template_names(entry.text))

    def values_at(self, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The values of names in a variant."""
        return self.experiment.template_values(point)


def all_templates(experiment: Experiment) -> Iterator[Template]:
    """Yields every string that may contain names."""
    plain = experiment.model_dump(include=set(WITH_TEMPLATES), exclude_none=True)
    plain.pop("workload" if experiment.workloads else "workloads", None)
    for path, text in template.list_strings({key: plain.get(key) for key in WITH_TEMPLATES}):
        kind = KINDS.get(str(path[1 if path[0] == "workload" else 2])) if str(path[0]).startswith("workload") else None
        is_literal = kind is not None and not set(path).isdisjoint(kind.literal)
        if not is_literal and (path[0] != "systems" or path[2:] not in (("store",), ("start", "system"))):
            yield Template(path, text)


def list_template_values(context: Context, entry: Template) -> set[str]:
    """All values of a template, at the points to which it applies."""
    if not template.template_names(entry.text):
        return {template.render_template(entry.text, {})}
    applies = [point for point in context.points if entry.system in (None, point.get("system"))]
    return {template.render_template(entry.text, context.values_at(point)) for point in applies}


def names_of_servers(context: Context) -> Iterator[str]:
    """Yields names that commands may use if every system has servers: addresses, and settings of started systems."""
    systems = context.experiment.systems
    if not all(part.start or (part.attach and part.attach.hosts) for part in systems.values()):
        return
    yield from ADDRESS
    for name, part in systems.items():
        if part.start is not None:
            system = part.start.system or SERVED_BY.get(part.store or name, "")
            yield "nodes"
            yield from part.start.settings
            yield from registry.public_names(system) if system in registry.SYSTEMS else ()


def check_templates(context: Context) -> set[str]:
    """Checks that every name in a template is defined. Returns all names that are used."""
    used: set[str] = set()
    for entry in context.list_templates():
        for variable in (
            () if entry.later == AT_RUN_TIME or entry.is_command else template.environment_names(entry.text)
        ):
            if variable not in os.environ:
                hint = f"set it before the run: export {variable}=…"
                context.add_mistake(entry.path, f"{written(entry.path)} uses ${{{variable}}}, which is not set", hint)
        try:
            named = template.template_names(entry.text)
        except ValueError as error:
            message, hint = error.args
            context.add_mistake(entry.path, f"{written(entry.path)} has {message}", hint)
            context.lost.add(entry.path)
            continue
        used |= set(named)
        for word in named:
            check_named(context, entry, word)
    return used


def check_named(context: Context, entry: Template, word: str) -> None:
    """Checks one name in a template."""
    values = {"rate": context.experiment.constant_rate, "operations": context.experiment.measure.operations}
    given_names = [key for key in PREDEFINED if key not in context.dimensions and values.get(key, key) is not None]
    named = context.experiment.vary.named.values()
    settings = dict.fromkeys(key for names in named for own in names.values() for key in own)
    later = (*entry.later, *(names_of_servers(context) if entry.is_command else ()))
    known = [*context.dimensions, *settings, *given_names, *later]
    if word in known:
        return
    context.lost.add(entry.path)
    hint = (
        suggest_names(word, known, "the names are") + "; write {{ and }} for braces" if context.is_valid("vary") else ""
    )
    if word in AT_RUN_TIME:
        hint = f"use {{{word}}} only in commands of `hooks`"
    elif word in ("rate", "operations"):
        hint = f"set {'a `rate`' if word == 'rate' else '`measure.operations`'}, or vary it"
    elif word in ADDRESS and entry.is_command:
        hint = "have the lab start servers (`systems: {redis: {start: redis}}`), or name them in `attach`"
    elif not re.fullmatch(r"[\w.-]+", word):
        hint = f"write {{{{{word}}}}} for literal braces"
    if hint:
        context.add_mistake(entry.path, f"{{{word}}} in {written(entry.path)} is not defined", hint)
