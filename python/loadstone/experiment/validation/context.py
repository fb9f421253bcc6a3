"""The shared state of validation: the experiment, its locations in the file, mistakes and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.experiment.kind import KINDS, PLAIN, Kind
from loadstone.experiment.mistake import Mistake
from loadstone.experiment.model import points, template
from loadstone.experiment.model.experiment import Experiment, Workload
from loadstone.experiment.model.system import ATTACH_COMMANDS, Hooks, System
from loadstone.experiment.model.values import Scalar
from loadstone.experiment.model.ycsb_properties import CHANGING_RATES
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.reading.shape import Shaped
from loadstone.experiment.reading.tree import Node

# Dimensions that override the key of the same name, without a template.
ACTING = ("system", "clients", "rate", "operations", "durability", "arrival")
# What every template may name besides the dimensions.
GIVEN = (*ACTING, "store")
# What only commands may name: it is known at run time.
AT_RUN_TIME = ("directory", "trial", "repeat", "results")
# What the commands of `attach` may name.
OF_SERVERS = ("host", "port", "table")


@dataclass(frozen=True)
class Template:
    """A string that may contain names, with its path; and its `system`, if it belongs to one."""

    path: Keys
    text: str
    system: str | None = None
    command: bool = False
    # Further names, whose values are known at run time.
    later: tuple[str, ...] = ()


@dataclass
class Context(Shaped):
    """An experiment during validation. Checks fill in its defaults; without mistakes it is then complete and valid."""

    # The directories that relative paths are tried in: the file's, the current one.
    bases: tuple[Path, ...] = ()
    warnings: list[Mistake] = field(default_factory=list)
    dimensions: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    points: list[points.Point] = field(default_factory=list)

    def wrong(self, path: Keys, message: str, hint: str) -> None:
        """Adds a mistake."""
        self.mistakes.append(Mistake(self.location(path), message, hint))

    def warn(self, path: Keys, message: str, hint: str) -> None:
        """Adds a warning."""
        self.warnings.append(Mistake(self.location(path), message, hint))

    def complete(self, **keys: object) -> None:
        """Fills in keys of the experiment."""
        self.experiment = self.experiment.model_copy(update=keys)

    def complete_workload(self, path: Keys, workload: Workload) -> None:
        """Fills in keys of a workload."""
        value = workload if path == ("workload",) else {**self.experiment.workloads, str(path[-1]): workload}
        self.complete(**{str(path[0]): value})

    def given(self, *path: str) -> bool:
        """Whether the file sets this key."""
        node: Node = self.tree
        for part in path:
            below = getattr(node, "entries", {}).get(part)
            if below is None or getattr(below, "value", below) is None:
                return False
            node = below
        return True

    def kinds(self) -> list[Kind]:
        """The distinct workload kinds; YCSB if none is given."""
        names = [name for each in self.experiment.each_workload.values() for name in each.kinds]
        return [KINDS[name] for name in dict.fromkeys(names or [PLAIN])]

    def changing_rates(self) -> Iterator[Keys]:
        """The paths of changing rates in workloads."""
        for each in self.templates():
            if str(each.path[0]).startswith("workload") and each.path[-1] in CHANGING_RATES:
                yield each.path

    def templates(self) -> Iterator[Template]:
        """Every valid string that may contain names."""
        for each in all_templates(self.experiment):
            if self.knows(*each.path):
                yield each

    def values(self, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The values of names in a variant."""
        return points.values(self.experiment, point)


def all_templates(experiment: Experiment) -> Iterator[Template]:
    """Every string that may contain names."""
    for path, workload in experiment.each_workload.items():
        yield from within(path, workload.model_dump(exclude_none=True))
    yield from below(("load", "properties"), experiment.load.properties)
    for name, system in experiment.systems.items():
        yield from below(("systems", name, "properties"), system.properties, name)
        yield from server_templates(("systems", name), system, name)
        yield from hook_templates(("systems", name), system.hooks, name)
    yield from hook_templates((), experiment.hooks)
    if experiment.directory is not None:
        yield Template(("directory",), experiment.directory)


def within(path: Keys, value: object, system: str | None = None) -> Iterator[Template]:
    """Every string in plain values."""
    if isinstance(value, str):
        yield Template(path, value, system)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from within((*path, key), each, system)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from within((*path, i), each, system)


def below(path: Keys, texts: Mapping[str, str], system: str | None = None) -> Iterator[Template]:
    """The strings of a mapping."""
    for key, text in texts.items():
        yield Template((*path, key), text, system)


def hook_templates(path: Keys, hooks: Hooks, system: str | None = None) -> Iterator[Template]:
    """The commands of hooks."""
    for when in ("before", "after"):
        for i, text in enumerate(getattr(hooks, when)):
            yield Template((*path, "hooks", when, i), text, system, command=True)


def server_templates(path: Keys, system: System, name: str) -> Iterator[Template]:
    """The templates of a system's servers."""
    for at, each in ((("start",), system.start), (("start", "over"), system.start and system.start.over)):
        if each is not None:
            nodes = {} if each.nodes is None else {"nodes": each.nodes}
            yield from below((*path, *at), nodes, name)
            yield from below((*path, *at, "settings"), each.settings, name)
    if system.start is not None:
        for when in ("before", "after"):
            yield from within((*path, "start", when), getattr(system.start, when), name)
    if system.attach is not None:
        for i, text in enumerate(system.attach.hosts):
            yield Template((*path, "attach", "hosts", i), text, name)
        for key in ATTACH_COMMANDS:
            yield Template((*path, "attach", key), getattr(system.attach, key), name, later=OF_SERVERS)
    yield from below((*path, "table"), system.table, name)


def rendered(context: Context, each: Template) -> set[str]:
    """All values of a template, over the points that it applies to."""
    names = set(template.names(each.text))
    if not names:
        return {template.render(each.text, {})}
    seen = {}
    for point in context.points:
        if each.system is None or point.get("system") == each.system:
            known = context.values(point)
            seen[tuple(known[name] for name in names)] = known
    return {template.render(each.text, known) for known in seen.values()}
