"""Validates workloads: each must have the keys of one kind, valid at every point, and stores that the kind can use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from loadstone.experiment.kind import KINDS, PLAIN
from loadstone.experiment.model.template import render_strings, render_template
from loadstone.experiment.model.vary import Point
from loadstone.experiment.reading.model_errors import translate_error
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.reading.path import format_path
from loadstone.experiment.validation.context import Context
from loadstone.format.suggestion import suggest_names


def check_workloads(context: Context) -> None:
    """Checks every workload, and checks that its kind can use the stores of its systems."""
    if context.experiment.workloads and context.is_set("workload"):
        context.add_mistake(("workload",), "both `workload` and `workloads` are set", "keep one of them")
    for path, workload in context.experiment.all_workloads.items():
        kinds = workload.kinds
        if not kinds and context.is_valid(*path):
            other_kinds = ", ".join(f"`{kind}`" for kind in KINDS if kind != PLAIN)
            hint = f"write `file: ../workloads/workloada`; other workload kinds are {other_kinds}"
            context.add_mistake(path, f"`{format_path(path)}.file` is missing", hint)
        elif len(kinds) > 1:
            context.add_mistake(
                path, f"{format_path(path)} has keys of several kinds: {', '.join(kinds)}", "keep one kind"
            )
        elif kinds:
            keys = path if kinds[0] == PLAIN else (*path, kinds[0])
            if kinds[0] != PLAIN:
                check_points(context, keys, workload.keys_of_kind(kinds[0]))
            KINDS[kinds[0]].check(context, keys, workload.keys_of_kind(kinds[0]))
    check_stores(context)


def points_using(context: Context, path: Keys) -> Iterator[Point]:
    """The points that use the workload at a path."""
    for point in context.points:
        if context.experiment.workload_at(point) == path[: 1 if path[0] == "workload" else 2]:
            yield point


def check_points(context: Context, path: Keys, keys: Any) -> None:
    """Checks that the keys are valid at every point, with templates rendered."""
    rendered_points: set[str] = set()
    if not context.is_valid(*path):
        return
    kind = KINDS[str(path[-1])]
    options = keys.model_dump(exclude_unset=True)
    unrendered = {key: options.pop(key) for key in (*kind.commands, *kind.literal) if key in options}
    for point in points_using(context, path):
        try:
            keys_at_point = (
                render_strings(options, partial(render_template, values=context.values_at(point))) | unrendered
            )
        except KeyError:
            return
        if (text := repr(keys_at_point)) in rendered_points:
            continue
        rendered_points.add(text)
        try:
            type(keys).model_validate(keys_at_point)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                mistake = translate_error(context.tree, detail, (*path, *detail["loc"]))
                if mistake not in context.mistakes:
                    context.mistakes.append(mistake)


def check_stores(context: Context) -> None:
    """Checks that the workload kind can use the system's store at every point."""
    checked = set()
    every = {name for kind in KINDS.values() for name in kind.stores()}
    for point in context.points:
        system, work = str(point.get("system")), context.work_at(point)
        if work is None or (work[0], system) in checked:
            continue
        path, _, kind = work
        checked.add((path, system))
        entry, known = context.experiment.systems.get(system), list(KINDS[kind].stores())
        if entry is not None and entry.store in every - {*known} and context.is_valid("systems", system):
            excluded = f"; or exclude the pair: `vary: {{exclude: [{{system: {system}, workload: {path[-1]}}}]}}`"
            hint = suggest_names(entry.store, known, "its stores are") + (excluded if len(path) > 1 else "")
            context.add_mistake(("systems", system, "store"), f"{kind} cannot use the store {entry.store}", hint)
