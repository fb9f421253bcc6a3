"""Validates an experiment: from its tree to the experiment with all defaults filled in, and all mistakes."""

from __future__ import annotations

from pathlib import Path

from loadstone.experiment.model.directory import default_directory
from loadstone.experiment.model.template import escape
from loadstone.experiment.reading.shape import shape
from loadstone.experiment.reading.tree import Table
from loadstone.experiment.validation import (
    compare,
    faults,
    figures,
    find,
    fleet,
    measure,
    properties,
    servers,
    stages,
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
    stages.check(context)
    measure.check(context)
    fleet.check(context)
    faults.check(context)
    find.check(context)
    measure.check_repeats(context)
    measure.check_pace(context)
    check_directory(context)
    return context


def check_directory(context: Context) -> None:
    """Makes the directory absolute, so that it does not depend on where the experiment is run."""
    given = context.experiment.directory
    here = Path(escape(str(Path.cwd())))
    # A path that begins with a template may turn out to be absolute (`Builder`).
    template = given is not None and given.startswith("{") and not given.startswith("{{")
    absolute = given if template else escape(default_directory()) if given is None else str(here / given)
    context.complete(directory=absolute)
