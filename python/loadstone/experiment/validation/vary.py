"""Validates `vary`: the dimensions, their values, and the resulting points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from pydantic_core import PydanticCustomError

from loadstone.engine.describe import describe_engine
from loadstone.experiment.model import template
from loadstone.experiment.model.values import Arrival, Durability, Scalar, digits_hint, parse_placement, quote_value
from loadstone.experiment.model.vary import (
    Vary,
    count_points,
    distinct_values,
    find_duplicates,
    has_values,
    list_points,
)
from loadstone.experiment.model.ycsb_properties import KEYS
from loadstone.experiment.reading.path import Path, format_path
from loadstone.experiment.validation.context import ACTING, AT_RUN_TIME, PREDEFINED, Context
from loadstone.format import units
from loadstone.format.suggestion import suggest_name, suggest_names

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# More variants than this are a mistake: at a second each, they would take almost two weeks.
POINTS_MAX = 1_000_000
ALLOWED: dict[str, Sequence[str]] = {"durability": get_args(Durability), "arrival": get_args(Arrival)}


def check_vary(context: Context) -> None:
    """Fills in `vary` and creates the points, unless `vary` is invalid."""
    vary = context.experiment.vary
    for kind in ("matrix", "zip"):
        for dimension, values in getattr(vary, kind).items():
            check_dimension(context, ("vary", kind, dimension), dimension, values)
    for dimension in vary.zip:
        if dimension in vary.matrix:
            context.add_mistake(("vary", "zip", dimension), f"{dimension} is also in `matrix`", "keep one of them")
    for dimension, settings in vary.named.items():
        check_settings(context, ("vary", "named", dimension), dimension, settings)
    check_zip(context, vary)
    if not context.is_valid("systems") or not context.is_valid("vary"):
        context.dimensions = distinct_values(vary)
        return
    for dimension, names in dimensions_of_keys(context).items():
        vary = with_names(vary, dimension, names)
    context.fill_in(vary=vary)
    context.dimensions = distinct_values(vary)
    if count_points(vary) > POINTS_MAX:
        context.add_mistake(
            ("vary",),
            f"{units.format_count(count_points(vary))} variants are too many",
            f"vary fewer values: at most {units.format_count(POINTS_MAX)} variants are allowed",
        )
        return
    complete = check_include(context, vary)
    check_exclude(context, vary)
    if complete:
        context.points = list_points(vary)
        if not context.points:
            context.add_mistake(("vary",), "every variant is excluded", "exclude fewer variants")


def check_dimension(context: Context, path: Path, dimension: str, values: Sequence[Scalar]) -> None:
    """Checks the name and the values of a dimension."""
    if not NAME.fullmatch(dimension):
        hint = "use only letters, digits and . _ -, and begin with a letter"
        context.add_mistake(path, f'"{dimension}" is not a valid name for a dimension', hint)
    elif dimension in AT_RUN_TIME or dimension == "store":
        hint = f'rename the dimension, for example "my_{dimension}"'
        if dimension == "directory":
            hint = 'write `directory: "{disk}"`, and vary `disk`'
        context.add_mistake(path, f"the name `{dimension}` is reserved", hint)
    if not context.is_valid(*path):
        return
    if not values:
        context.add_mistake(path, f"{format_path(path)} has no values", f"add values, or leave {dimension} out")
    for i in find_duplicates(values):
        hint = "remove one of them, or add a dimension to get two equal variants: `copy: [1, 2]`"
        context.add_mistake((*path, i), f"{format_path(path)} has {quote_value(values[i])} twice", hint)
    for i, value in enumerate(values):
        check_value(context, (*path, i), dimension, value)


def check_settings(context: Context, path: Path, dimension: str, settings: Mapping[str, Mapping[str, Scalar]]) -> None:
    """Checks a dimension of named settings: all names set the same values, which are not dimensions themselves."""
    check_dimension(context, path, dimension, tuple(settings))
    vary = context.experiment.vary
    if dimension in vary.matrix or dimension in vary.zip:
        context.add_mistake(path, f"{dimension} is also in `matrix` or `zip`", "keep one of them")
    first = next(iter(settings.values()), {})
    for setting, own in settings.items():
        if missing := [key for key in first if key not in own]:
            message, hint = f'"{setting}" does not set {missing[0]}', f"set {missing[0]} under every name"
            context.add_mistake((*path, setting), message, hint)
        for key in own:
            if key in (*AT_RUN_TIME, *PREDEFINED, *distinct_values(vary)) or key not in first:
                message = f'"{setting}" cannot set {key}' if key in first else f'only "{setting}" sets {key}'
                context.add_mistake(
                    (*path, setting, key), message, "set only values for templates, and the same values for every name"
                )
            check_value(context, (*path, setting, key), key, own[key])


def check_value(context: Context, path: Path, dimension: str, value: Scalar) -> None:
    """Checks that a value is valid for its dimension, and that it contains no environment variable.

    Environment variables in values would not be replaced.
    """
    if isinstance(value, str) and (variables := template.environment_names(value)):
        message = f"vary.{dimension} uses ${{{variables[0]}}}, but environment variables are not replaced there"
        hint = f"use ${{{variables[0]}}} in a property or setting, or set the values: --set vary.{dimension}=[…]"
        context.add_mistake(path, message, hint)
        return
    message = f"{dimension} cannot be {quote_value(value)}"
    if dimension in (names := dimensions_of_keys(context)) and context.is_valid(f"{dimension}s"):
        if value not in names[dimension]:
            hint = suggest_names(str(value), names[dimension], f"the file's {dimension}s are")
            context.add_mistake(path, f"there is no {dimension} {quote_value(value)}", hint)
    elif dimension in ALLOWED:
        if value not in ALLOWED[dimension]:
            context.add_mistake(path, message, suggest_names(str(value), ALLOWED[dimension], "the values are"))
    elif dimension in ("clients", "operations"):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            context.add_mistake(path, message, "write a whole number of at least 1")
    elif dimension == "placement" and context.experiment.fleet.on != "local":
        try:
            parse_placement(value)
        except PydanticCustomError:
            context.add_mistake(path, message, "write apart or beside, or a label of the hosts, such as role=clients")
    elif dimension == "rate" and (isinstance(value, bool | str) or value <= 0):
        context.add_mistake(path, message, digits_hint(value) or "write a number of operations per second above 0")


def check_zip(context: Context, vary: Vary) -> None:
    """Checks that paired lists have equal lengths."""
    lengths = {dimension: len(values) for dimension, values in vary.zip.items()}
    if len(set(lengths.values())) > 1 and context.is_valid("vary", "zip"):
        listed = ", ".join(f"{dimension} {count}" for dimension, count in lengths.items())
        message = f"the lists of vary.zip differ in length: {listed}"
        context.add_mistake(("vary", "zip"), message, "write the same number of values in each list")


def dimensions_of_keys(context: Context) -> dict[str, tuple[str, ...]]:
    """The dimensions whose values are keys of the file: systems, and workloads if there are several."""
    experiment = context.experiment
    workloads = {"workload": tuple(experiment.workloads)} if experiment.workloads else {}
    return {**workloads, "system": tuple(experiment.systems)}


def with_names(vary: Vary, dimension: str, names: tuple[str, ...]) -> Vary:
    """Adds a dimension to `vary` whose values are these names, unless the file already varies that dimension."""
    include = vary.include
    if dimension in vary.matrix or dimension in vary.zip:
        crossed = (*vary.matrix.get(dimension, ()), *vary.zip.get(dimension, ()))
        only = crossed[0] if len(crossed) == 1 else None
    else:
        only = names[0] if len(names) == 1 else None
        if vary.combine_dimensions() or vary.zip or not include:
            vary = vary.model_copy(update={"matrix": {dimension: names, **vary.matrix}})
    if only is not None:
        include = tuple({dimension: only, **point} for point in include)
    return vary.model_copy(update={"include": include})


def check_include(context: Context, vary: Vary) -> bool:
    """Checks that additional points are new, and that each has a value for exactly the dimensions; returns whether all
    have."""
    dimensions = distinct_values(vary.model_copy(update={"include": ()})) or distinct_values(vary)
    crossed = list_points(vary.model_copy(update={"include": ()})) if vary.include else []
    complete = True
    for i, point in enumerate(vary.include):
        path: Path = ("vary", "include", i)
        complete &= check_names(context, path, point, dimensions)
        for dimension, value in point.items():
            check_value(context, (*path, dimension), dimension, value)
        missing = [dimension for dimension in (*dimensions, *dimensions_of_keys(context)) if dimension not in point]
        if missing:
            complete = False
            context.add_mistake(path, f"{format_path(path)} has no `{missing[0]}`", "write a value for every dimension")
        elif point in crossed or point in vary.include[:i]:
            context.add_mistake(path, f"{format_path(path)} is already a variant", "remove it")
    return complete


def check_exclude(context: Context, vary: Vary) -> None:
    """Checks that each exclusion matches a variant."""
    crossed = vary.model_copy(update={"include": (), "exclude": ()})
    dimensions, combinations = distinct_values(crossed), list_points(crossed) if vary.exclude else []
    for i, point in enumerate(vary.exclude):
        path: Path = ("vary", "exclude", i)
        known = check_names(context, path, point, dimensions)
        if known and not any(has_values(excluded, point) for excluded in combinations):
            wrong = [key for key, value in point.items() if value not in dimensions[key]]
            hint = "name a combination of `matrix` and `zip`, or remove the exclusion"
            if wrong:
                values = [str(value) for value in dimensions[wrong[0]]]
                hint = suggest_names(str(point[wrong[0]]), values, f"the values of {wrong[0]} are")
            context.add_mistake(path, f"{format_path(path)} excludes nothing", hint)


def check_names(
    context: Context, path: Path, point: Mapping[str, Scalar], dimensions: Mapping[str, Sequence[Scalar]]
) -> bool:
    """Checks that the keys of a point are dimensions. Returns whether all are."""
    unknown = [key for key in point if key not in dimensions]
    for key in unknown:
        hint = suggest_names(key, list(dimensions), "the dimensions are")
        context.add_mistake((*path, key), f'there is no dimension "{key}"', hint)
    return not unknown


def check_use(context: Context, used: set[str]) -> None:
    """Warns of dimensions that nothing uses, and of keys that a dimension overrides.

    The variants of an unused dimension are equal, which may be intended.
    """
    vary = context.experiment.vary
    for dimension, values in context.dimensions.items():
        settings = vary.named.get(dimension, {})
        if dimension in (*ACTING, *dimensions_of_keys(context)) or len(values) < 2:
            continue
        if not used.isdisjoint((dimension, *(key for own in settings.values() for key in own))):
            continue
        hint = f"write {{{dimension}}} where its value belongs; leave it unused only to compare equal variants"
        if guess := suggest_name(dimension, ACTING):
            hint = guess
        elif dimension in KEYS and KEYS[dimension] in ACTING:
            hint = f"vary `{KEYS[dimension]}` instead, which needs no template"
        elif dimension in describe_engine().properties or "." in dimension:
            hint = f'to set the property, write `properties: {{{dimension}: "{{{dimension}}}"}}`'
        kinds = [kind for kind in ("matrix", "zip", "named") if dimension in getattr(vary, kind)]
        path: Path = ("vary", kinds[0], dimension) if kinds else ("vary", "include")
        context.add_warning(path, f"nothing uses the dimension {dimension}", hint)
    acting = (("clients",), ("rate",), ("measure", "operations"), ("durability",), ("arrival",), ("fleet", "placement"))
    for path in acting:
        key = path[-1]
        if key in context.dimensions and context.is_set(*path):
            dotted = ".".join(path)
            context.add_warning(path, f"`{dotted}` has no effect with vary.{key}", f"leave `{dotted}` out")
