"""What the checks of an experiment share: the experiment, where everything stands, and what they have to say."""

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
from loadstone.experiment.model.ycsb_properties import MOVING_RATES
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.reading.shape import Shaped
from loadstone.experiment.reading.tree import Node

# Dimensions that act by themselves: the key that they stand in for.
ACTING = ("system", "clients", "rate", "operations", "durability", "arrival")
# What every template may name beside the dimensions.
GIVEN = (*ACTING, "store")
# What only commands may name: it is known when the trial runs.
AT_RUN_TIME = ("directory", "trial", "repeat", "results")
# What the commands of `attach` may name.
OF_SERVERS = ("host", "port", "table")


@dataclass(frozen=True)
class Template:
    """A text with names in it, and where it stands; `system` if it is that system's alone."""

    path: Keys
    text: str
    system: str | None = None
    command: bool = False
    # What else it may name: known when it is used.
    later: tuple[str, ...] = ()


@dataclass
class Context(Shaped):
    """One experiment under examination. Checks complete it: what they leave is resolved, and sound without mistakes."""

    # Where relative paths may start: the file's directory, the current one.
    bases: tuple[Path, ...] = ()
    warnings: list[Mistake] = field(default_factory=list)
    dimensions: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    points: list[points.Point] = field(default_factory=list)

    def wrong(self, path: Keys, message: str, hint: str) -> None:
        """Adds a mistake."""
        self.mistakes.append(Mistake(self.place(path), message, hint))

    def warn(self, path: Keys, message: str, hint: str) -> None:
        """Adds a warning."""
        self.warnings.append(Mistake(self.place(path), message, hint))

    def complete(self, **keys: object) -> None:
        """Fills in keys of the experiment."""
        self.experiment = self.experiment.model_copy(update=keys)

    def complete_workload(self, path: Keys, workload: Workload) -> None:
        """Fills in keys of a workload."""
        whole = workload if path == ("workload",) else {**self.experiment.workloads, str(path[-1]): workload}
        self.complete(**{str(path[0]): whole})

    def given(self, *path: str) -> bool:
        """Whether the file itself says this."""
        node: Node = self.tree
        for part in path:
            below = getattr(node, "entries", {}).get(part)
            if below is None or getattr(below, "value", below) is None:
                return False
            node = below
        return True

    def kinds(self) -> list[Kind]:
        """The kinds of work of its workloads, each once; YCSB's where nothing says which."""
        names = [name for each in self.experiment.each_workload.values() for name in each.kinds]
        return [KINDS[name] for name in dict.fromkeys(names or [PLAIN])]

    def moving_rates(self) -> Iterator[Keys]:
        """Where workloads give a rate that moves."""
        for each in self.templates():
            if str(each.path[0]).startswith("workload") and each.path[-1] in MOVING_RATES:
                yield each.path

    def templates(self) -> Iterator[Template]:
        """Every text in which names may stand, as far as it was understood."""
        for each in all_templates(self.experiment):
            if self.knows(*each.path):
                yield each

    def values(self, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """What names stand for in a variant."""
        return points.values(self.experiment, point)


def all_templates(experiment: Experiment) -> Iterator[Template]:
    """Every text in which names may stand."""
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
    """Every text in plain values."""
    if isinstance(value, str):
        yield Template(path, value, system)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from within((*path, key), each, system)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from within((*path, i), each, system)


def below(path: Keys, texts: Mapping[str, str], system: str | None = None) -> Iterator[Template]:
    """Texts by their keys."""
    for key, text in texts.items():
        yield Template((*path, key), text, system)


def hook_templates(path: Keys, hooks: Hooks, system: str | None = None) -> Iterator[Template]:
    """The commands of hooks."""
    for when in ("before", "after"):
        for i, text in enumerate(getattr(hooks, when)):
            yield Template((*path, "hooks", when, i), text, system, command=True)


def server_templates(path: Keys, system: System, name: str) -> Iterator[Template]:
    """Those of a system's servers."""
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
    """What a text comes to over all points that it is for."""
    names = set(template.names(each.text))
    if not names:
        return {template.render(each.text, {})}
    seen = {}
    for point in context.points:
        if each.system is None or point.get("system") == each.system:
            known = context.values(point)
            seen[tuple(known[name] for name in names)] = known
    return {template.render(each.text, known) for known in seen.values()}
