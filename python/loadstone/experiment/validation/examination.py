"""Validates an experiment: from its tree to the experiment with all defaults filled in, and all mistakes."""

from __future__ import annotations

from pathlib import Path

from loadstone.engine.describe import description
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model.directory import default_directory
from loadstone.experiment.model.template import escape
from loadstone.experiment.reading.shape import shape
from loadstone.experiment.reading.tree import Table
from loadstone.experiment.validation import (
    compare,
    figures,
    find,
    measure,
    properties,
    servers,
    vary,
    workload,
)
from loadstone.experiment.validation.context import Context, check_templates


def examine(tree: Table, bases: tuple[Path, ...]) -> Context:
    """Runs all checks. `bases`: the directories that relative paths are tried in."""
    context = Context(**vars(shape(tree)), bases=bases)
    properties.check_systems(context)
    vary.check(context)
    used = check_templates(context)
    if context.knows("vary"):
        vary.check_use(context, used)
    workload.check(context)
    servers.check(context)
    compare.check(context)
    figures.check(context)
    figures.check_expectations(context)
    compare.check_thresholds(context)
    measure.check(context)
    check_fleet(context)
    find.check(context)
    measure.check_repeats(context)
    measure.check_pace(context)
    check_directory(context)
    return context


def check_fleet(context: Context) -> None:
    """Each engine has a client, and none needs files that another has open."""
    experiment = context.experiment
    engines = experiment.fleet.engines
    if engines == 1 or not context.knows("fleet"):
        return
    works = [(point, context.work_at(point)) for point in context.points]
    clients = [
        point.get("clients", experiment.clients) for point, work in works if work is None or KINDS[work[2]].clients
    ]
    fewest = min(each for each in [*clients, experiment.load.clients or engines] if isinstance(each, int))
    if fewest < engines:
        message = f"fleet.engines is {engines}, but some trials have fewer clients: {fewest}"
        context.wrong(("fleet", "engines"), message, "use fewer engines or more clients: each engine needs one")
    for name, system in experiment.systems.items():
        if context.knows("systems", name) and description().within_engine(system.store):
            message = f"{system.store} keeps its data in files of the engine, which several engines cannot share"
            context.wrong(("systems", name), message, "leave `fleet.engines` out, or use a networked store")


def check_directory(context: Context) -> None:
    """Makes the directory absolute, so that it does not depend on where the experiment is run."""
    given = context.experiment.directory
    here = Path(escape(str(Path.cwd())))
    # A path that begins with a template may turn out to be absolute (`Builder`).
    template = given is not None and given.startswith("{") and not given.startswith("{{")
    absolute = given if template else escape(default_directory()) if given is None else str(here / given)
    context.complete(directory=absolute)
