"""An experiment file: read, laid over by a scale and by settings, and examined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadstone.experiment.mistake import ExperimentError, Mistake, Place
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import shown
from loadstone.experiment.reading import resolved
from loadstone.experiment.reading.layers import SET_RANK, lay_over, lay_settings
from loadstone.experiment.reading.resolved import same
from loadstone.experiment.reading.shape import shape
from loadstone.experiment.reading.short_forms import write_out
from loadstone.experiment.reading.tree import Scalar, Table, places, read, read_value
from loadstone.experiment.validation.examination import examine
from loadstone.format.suggestion import suggestion
from loadstone.results.result_set import Question

__all__ = ["ExperimentError", "Loaded", "asked_again", "load", "same"]

# What may be asked of results that are there.
AFTERWARDS = ("compare", "claims", "checks")


@dataclass(frozen=True)
class Loaded:
    """An experiment that can be run."""

    experiment: Experiment
    # What the user may not have meant.
    warnings: tuple[Mistake, ...]
    # The document as YAML with everything spelled out, passwords hidden; `load` makes an equal experiment of it.
    resolved: str


def load(path: Path | str, scale: str | None = None, settings: Sequence[str] = ()) -> Loaded:
    """Reads an experiment: the file, over it the scale, over that each `key=value`.

    Raises ExperimentError with everything that is wrong, with that of scales that were not asked for as well.
    """
    path = Path(path)
    tree, mistakes = read(path)
    tree, scales = parted(tree, mistakes)
    bases = (path.parent, Path())
    merged = over(tree, scales.get(scale)) if scale is not None else tree
    if scale is not None and scale not in scales:
        place = Place(SET_RANK - 1, f"--scale {scale}")
        hint = (
            suggestion(scale, list(scales), "the file has") if scales else "the file has no `scales`; leave --scale out"
        )
        mistakes.append(Mistake(place, f'there is no scale "{scale}"', hint))
    merged, wrong = lay_settings(merged, settings)
    examined = examine(merged, bases)
    mistakes += [*wrong, *examined.mistakes]
    for name, each in scales.items():
        if name != scale:
            # Only what the scale itself says: the rest has been looked at without it.
            said = set(places(each))
            mistakes += [mistake for mistake in examine(over(tree, each), bases).mistakes if mistake.place in said]
    if mistakes:
        raise ExperimentError(mistakes)
    warnings = tuple(sorted(examined.warnings, key=lambda warning: warning.place))
    return Loaded(examined.experiment, warnings, resolved.text(examined.experiment))


def asked_again(question: Question, settings: Sequence[str]) -> Question:
    """What results are asked, with `compare.…`, `claims` and `checks.…` as `key=value`s say instead.

    Raises ExperimentError when one makes no sense, or is about what was measured.
    """
    place = Place(SET_RANK - 1, "--set")
    minimal, _ = read_value("{systems: {none: {}}, workload: {}}", place)
    assert isinstance(minimal, Table), "a mapping is a table"
    tree, mistakes = lay_settings(write_out(minimal), settings)
    for key in tree.entries:
        if key not in (*AFTERWARDS, "systems", "workload"):
            message, hint = f"{key} cannot be changed after the run", f"{', '.join(AFTERWARDS)} can"
            mistakes.append(Mistake(tree.keys[key], message, hint))
    shaped = shape(tree)
    if mistakes := [*mistakes, *shaped.mistakes]:
        raise ExperimentError(mistakes)
    asked = shaped.experiment.question_for_judge()
    changed: dict[str, Any] = {key: getattr(asked, key) for key in shaped.experiment.compare.model_fields_set}
    changed |= {key: getattr(asked, key) for key in ("claims",) if key in tree.entries}
    checks = {check: {**question.checks.get(check, {}), **given} for check, given in asked.checks.items()}
    return replace(question, **changed, checks={**question.checks, **checks})


def parted(tree: Table, mistakes: list[Mistake]) -> tuple[Table, dict[str, Table]]:
    """The document without its scales, and those, all with their short forms written out."""
    scales = tree.entries.get("scales")
    rest = {key: value for key, value in tree.entries.items() if key != "scales"}
    keys = {key: tree.keys[key] for key in rest}
    found: dict[str, Table] = {}
    if isinstance(scales, Table):
        for name, each in scales.entries.items():
            if isinstance(each, Table):
                found[name] = write_out(each)
            elif isinstance(each, Scalar) and each.value is None:
                found[name] = Table({}, {}, each.place)
            else:
                what = shown(each.value) if isinstance(each, Scalar) else "a list"
                hint = f"write `{name}: {{measure: {{duration: 2s}}}}`: keys that differ from the file's"
                mistakes.append(Mistake(scales.keys[name], f"scales.{name} must be a mapping, got {what}", hint))
    elif scales is not None and not (isinstance(scales, Scalar) and scales.value is None):
        hint = "write `scales: {small: {measure: {duration: 2s}}}`"
        mistakes.append(Mistake(tree.keys["scales"], "scales must be a mapping of names", hint))
    return write_out(Table(rest, keys, tree.place)), found


def over(tree: Table, scale: Table | None) -> Table:
    """The document with a scale over it."""
    merged = tree if scale is None else lay_over(tree, scale)
    assert isinstance(merged, Table), "a mapping over a mapping is one"
    return merged
