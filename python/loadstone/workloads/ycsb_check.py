"""Validates YCSB's workload files and properties, for every point of an experiment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadstone.engine.describe import describe_engine
from loadstone.experiment.model import template
from loadstone.experiment.model.vary import Point
from loadstone.experiment.model.ycsb_properties import CHANGING_RATES, KEYS, OF_A_COMMAND, SHARES, WHOLE_NUMBERS
from loadstone.experiment.reading import path as paths
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.validation.context import Context, Template, list_template_values
from loadstone.format.suggestion import did_you_mean, suggest_name
from loadstone.workloads import properties

# The properties that make a workload change data, with YCSB's defaults (CoreWorkload).
CHANGING = {
    "updateproportion": "0.05",
    "insertproportion": "0",
    "readmodifywriteproportion": "0",
    "deleteproportion": "0",
}
# A workload class that computes the number of records.
WITHOUT_RECORDCOUNT = "ConstantOccupancyWorkload"


def check(context: Context, path: Keys, keys: Any) -> None:
    """Finds the workload files, makes their path absolute, and checks their content and the properties."""
    check_names(context, path, keys)
    for entry in context.list_templates():
        if entry.path[:-1] == (*path, "properties") and context.can_render(entry):
            check_property(context, entry)
    if keys.file is None:
        if lacks_records(keys.properties):
            context.add_mistake(path, f"`{paths.format_path(path)}` sets neither `file` nor recordcount", MISSING_COUNT)
        return
    file = Template((*path, "file"), keys.file)
    if not context.can_render(file):
        return
    names = sorted(list_template_values(context, file))
    base = next((base for base in context.bases if all((base / name).is_file() for name in names)), None)
    if base is None:
        for name in names:
            check_file(context, file.path, name)
        return
    path_template = os.path.normpath(os.path.join(template.escape_braces(os.path.abspath(base)), file.text))
    context.complete_workload(path, keys.model_copy(update={"file": path_template}))
    for name in names:
        check_content(context, file.path, base / name, keys.properties)


def check_names(context: Context, above: Keys, keys: Any) -> None:
    """Checks that the workload's properties are properties of YCSB or of a binding, and may be set here."""
    for key in keys.properties:
        path = (*above, "properties", key)
        store = key.partition(".")[0]
        if key in KEYS:
            context.add_mistake(path, f"{key} cannot be set as a property", f"write `{KEYS[key]}`")
        elif key in OF_A_COMMAND:
            context.add_mistake(
                path, f"{key} has no effect in an experiment", "leave it out: the lab records all results"
            )
        elif store in describe_engine().stores and "." in key:
            hint = f"write it in `systems: {{{store}: {{properties: …}}}}`"
            context.add_mistake(path, f"{key} is a property of a store", hint)
        elif key in CHANGING_RATES and (context.experiment.rate is not None or "rate" in context.dimensions):
            context.add_mistake(path, f"{key} and `rate` cannot be combined", "keep one of them")
        elif key not in describe_engine().properties:
            hint = (
                f"{did_you_mean(key, describe_engine().properties)}correct the "
                "name, or ignore this if a binding uses it"
            )
            context.add_warning(path, f"YCSB has no property {key}", hint)


def check_file(context: Context, at: Keys, name: str) -> None:
    """Reports a workload file that none of the base directories contains."""
    tried = [base / name for base in context.bases]
    if any(path.is_file() for path in tried):
        return
    hint = "put it in " + " or ".join(dict.fromkeys(str(path.parent) for path in tried)) + ", or correct the path"
    for path in tried:
        neighbours = [neighbour.name for neighbour in path.parent.iterdir()] if path.parent.is_dir() else []
        if guess := suggest_name(path.name, neighbours, Path(name).parent.joinpath):
            hint = guess
            break
    context.add_mistake(at, f"there is no workload file {name}", hint)


def check_content(context: Context, at: Keys, path: Path, above: Mapping[str, str]) -> None:
    """Checks that a workload file is readable, and that it or the experiment sets the number of records."""
    try:
        in_file = properties.read(path)
    except OSError as error:
        context.add_mistake(at, f"cannot read {path}: {error.strerror}", "make the file readable by your user")
        return
    if lacks_records({**in_file, **above}):
        context.add_mistake(at, f"neither {path.name} nor the experiment sets recordcount", MISSING_COUNT)


def lacks_records(properties: Mapping[str, str]) -> bool:
    """Whether properties lack the number of records although the workload class needs it."""
    return properties.get("recordcount", "0") == "0" and not properties.get("workload", "").endswith(
        WITHOUT_RECORDCOUNT
    )


MISSING_COUNT = "write `workload: {properties: {recordcount: 100000}}`"


def check_property(context: Context, entry: Template) -> None:
    """Checks a property whose values must be numbers."""
    key = str(entry.path[-1])
    texts = list_template_values(context, entry) if context.points else {entry.text}
    for text in sorted(texts):
        if key in WHOLE_NUMBERS and not (text.isascii() and text.isdigit()):
            context.add_mistake(
                entry.path, f'{key} must be a whole number, got "{text}"', "write digits only, like 100000"
            )
        elif key in SHARES and not is_share(text):
            context.add_mistake(entry.path, f'{key} must be from 0 to 1, got "{text}"', "write 0.5 for a half")


def is_share(text: str) -> bool:
    """Whether a string is a number from 0 to 1."""
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Yields the properties with which the workload of a point changes data."""
    names = context.values_at(point)
    if not context.is_valid(*path):
        return
    try:
        options = dict(properties.read(Path(template.render_template(keys.file, names)))) if keys.file else {}
        options |= {key: template.render_template(text, names) for key, text in keys.properties.items()}
    except (OSError, KeyError):
        # `check_file` reports this error.
        return
    for key, default in CHANGING.items():
        try:
            share = float(options.get(key, default))
        except ValueError:
            continue
        if share > 0:
            yield key
