"""An experiment file: read, laid over by a scale and by settings, and examined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone.experiment import resolved
from loadstone.experiment.examination import examine
from loadstone.experiment.forms import SET_RANK, lay_over, lay_settings, write_out
from loadstone.experiment.mistake import ExperimentError, Mistake, Place
from loadstone.experiment.model import Experiment
from loadstone.experiment.resolved import same
from loadstone.experiment.tree import Scalar, Table, read, walk
from loadstone.experiment.values import shown
from loadstone.format.suggestion import suggestion

__all__ = ["ExperimentError", "Loaded", "load", "same"]


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
            places = set(places_of(each))
            mistakes += [mistake for mistake in examine(over(tree, each), bases).mistakes if mistake.place in places]
    if mistakes:
        raise ExperimentError(mistakes)
    warnings = tuple(sorted(examined.warnings, key=lambda warning: warning.place))
    return Loaded(examined.experiment, warnings, resolved.text(examined.experiment))


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


def places_of(tree: Table) -> list[Place]:
    """Every place in a tree, of keys and of values."""
    found = []
    for _, node in walk(tree):
        found.append(node.place)
        if isinstance(node, Table):
            found += node.keys.values()
    return found
