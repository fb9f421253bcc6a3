"""Validates the tree of an experiment: fills in all defaults, and finds all errors."""

from __future__ import annotations

from pathlib import Path

from loadstone.experiment.model.directory import default_directory
from loadstone.experiment.model.template import escape_braces
from loadstone.experiment.reading.shape import shape_tree
from loadstone.experiment.reading.tree import MappingNode
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


def examine_tree(tree: MappingNode, bases: tuple[Path, ...]) -> Context:
    """Runs all checks. `bases`: the directories in which files with relative paths are searched for."""
    context = Context(**vars(shape_tree(tree)), bases=bases)
    properties.check_systems(context)
    vary.check_vary(context)
    used = check_templates(context)
    if context.is_valid("vary"):
        vary.check_use(context, used)
    workload.check_workloads(context)
    servers.check_servers(context)
    compare.check_compare(context)
    figures.check_metrics(context)
    figures.check_expectations(context)
    compare.check_thresholds(context)
    stages.check_stages(context)
    measure.check_window(context)
    fleet.check_fleet(context)
    faults.check_faults(context)
    find.check_find(context)
    measure.check_repeats(context)
    measure.check_pace(context)
    check_directory(context)
    return context


def check_directory(context: Context) -> None:
    """Makes the directory absolute, so that it does not depend on the working directory of the run."""
    directory = context.experiment.directory
    here = Path(escape_braces(str(Path.cwd())))
    # A path that begins with a template may be absolute when it is rendered (`Builder`).
    template = directory is not None and directory.startswith("{") and not directory.startswith("{{")
    absolute = (
        directory if template else escape_braces(default_directory()) if directory is None else str(here / directory)
    )
    context.fill_in(directory=absolute)
