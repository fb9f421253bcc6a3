"""YCSB's workload files and the values of their properties, for every point of an experiment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from loadstone.experiment.model import template
from loadstone.experiment.model.points import Point
from loadstone.experiment.model.ycsb_properties import SHARES, WHOLE_NUMBERS
from loadstone.experiment.validation.context import Context, Template, rendered
from loadstone.format.suggestion import guessed
from loadstone.workloads import properties

FILE = ("workload", "file")
# What changes data, with YCSB's default of each (CoreWorkload).
CHANGING = {
    "updateproportion": "0.05",
    "insertproportion": "0",
    "readmodifywriteproportion": "0",
    "deleteproportion": "0",
}
# A workload of this class counts its records itself.
COUNTS_ITSELF = "ConstantOccupancyWorkload"


def check(context: Context) -> None:
    """Finds the files, and makes the path to them absolute; looks at what is in them."""
    for each in context.templates():
        if each.path[:2] == ("workload", "properties") and can_render(context, each):
            check_property(context, each)
    file = Template(FILE, context.experiment.workload.file)
    if not context.knows(*FILE) or not can_render(context, file):
        return
    names = sorted(rendered(context, file))
    base = next((base for base in context.bases if all((base / name).is_file() for name in names)), None)
    if base is None:
        for name in names:
            check_file(context, name)
        return
    whole = os.path.normpath(base / file.text) if Path(file.text).is_absolute() else absolute(base, file.text)
    workload = context.experiment.workload.model_copy(update={"file": whole})
    context.complete(workload=workload)
    for name in names:
        check_content(context, base / name)


def absolute(base: Path, text: str) -> str:
    """A template below a directory whose own braces stay braces."""
    return os.path.normpath(os.path.join(template.escape(os.path.abspath(base)), text))


def can_render(context: Context, each: Template) -> bool:
    """Whether a template was understood, and the values that it names."""
    return context.knows(*each.path) and bool(context.points or not template.names(each.text))


def check_file(context: Context, name: str) -> None:
    """A workload file that may be missing in all places."""
    tried = [base / name for base in context.bases]
    if any(path.is_file() for path in tried):
        return
    hint = "it was looked for in " + " and ".join(dict.fromkeys(str(path.parent) for path in tried))
    for path in tried:
        beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        if guess := guessed(path.name, beside, Path(name).parent.joinpath):
            hint = guess
            break
    context.wrong(FILE, f"there is no workload file {name}", hint)


def check_content(context: Context, path: Path) -> None:
    """A workload file can be read, and records are counted in it or in the experiment."""
    try:
        found = properties.read(path)
    except OSError as error:
        context.wrong(FILE, f"cannot read {path}: {error.strerror}", "make the file readable for your user")
        return
    given = {**found, **context.experiment.workload.properties}
    if given.get("recordcount", "0") == "0" and not given.get("workload", "").endswith(COUNTS_ITSELF):
        context.wrong(FILE, f"neither {path.name} nor the experiment says how many records there are", MISSING_COUNT)


MISSING_COUNT = "write `workload: {properties: {recordcount: 100000}}`"


def check_property(context: Context, each: Template) -> None:
    """A property whose values must be numbers."""
    key = str(each.path[-1])
    texts = rendered(context, each) if context.points else {each.text}
    for text in sorted(texts):
        if key in WHOLE_NUMBERS and not (text.isascii() and text.isdigit()):
            context.wrong(each.path, f'{key} must be a whole number, got "{text}"', "write digits only, like 100000")
        elif key in SHARES and not is_share(text):
            context.wrong(each.path, f'{key} must be from 0 to 1, got "{text}"', "write 0.5 for a half")


def is_share(text: str) -> bool:
    """Whether a text is a number from 0 to 1."""
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def changing(context: Context, point: Point) -> Iterator[str]:
    """The properties by which the workload of a point changes data."""
    names = context.values(point)
    workload = context.experiment.workload
    if not all(context.knows(*each.path) for each in context.templates() if each.path[:1] == ("workload",)):
        return
    if not context.knows(*FILE):
        return
    try:
        given = dict(properties.read(Path(template.render(workload.file, names))))
    except (OSError, KeyError):
        # The check of the file reports it.
        return
    given |= {key: template.render(text, names) for key, text in workload.properties.items()}
    for key, default in CHANGING.items():
        try:
            share = float(given.get(key, default))
        except ValueError:
            continue
        if share > 0:
            yield key
