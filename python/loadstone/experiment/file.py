"""Reads an experiment file, applies a scale and each `--set`, and validates the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadstone.experiment.mistake import ExperimentError, Location, Mistake
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import quote_value
from loadstone.experiment.reading import resolved
from loadstone.experiment.reading.layers import SET_RANK, apply_settings, merge_trees
from loadstone.experiment.reading.resolved import list_changed_keys
from loadstone.experiment.reading.shape import shape_tree
from loadstone.experiment.reading.short_forms import expand_tree
from loadstone.experiment.reading.tree import MappingNode, Scalar, list_locations, read_tree, read_value
from loadstone.experiment.validation import compare
from loadstone.experiment.validation.context import Context
from loadstone.experiment.validation.validate import examine_tree
from loadstone.format.suggestion import suggest_names
from loadstone.results.result_set import Question

__all__ = ["ExperimentError", "Loaded", "change_question", "list_changed_keys", "load_experiment"]

# Keys that do not affect existing results, so they can be changed when the results are judged again.
CHANGEABLE = ("compare", "claims", "checks")
# Some experiments were moved to this folder, but scripts may still use their former paths.
FORMER_FOLDER = "more"


@dataclass(frozen=True)
class Loaded:
    """A valid experiment."""

    experiment: Experiment
    # Warnings about settings that the user may not have intended.
    warnings: tuple[Mistake, ...]
    # The guarantees that each dimension sets.
    guarantees: Mapping[str, tuple[str, ...]]

    @property
    def text_with_defaults(self) -> str:
        """The experiment as YAML with all defaults and masked passwords, which `load_experiment` can read again."""
        return resolved.resolve_text(self.experiment)

    def question_for_judge(self) -> Question:
        """The parts of the experiment that the judge and the report need."""
        return replace(self.experiment.question_for_judge(), guarantees=self.guarantees)


def load_experiment(path: Path | str, scale: str | None = None, settings: Sequence[str] = ()) -> Loaded:
    """Reads an experiment file, applies the scale, and then applies each `key=value`.

    Raises ExperimentError with all errors, including errors in scales that were not selected.
    """
    path = find_moved(Path(path))
    tree, mistakes = read_tree(path)
    tree, scales = split_scales(tree, mistakes)
    bases = (path.parent, Path())
    merged = merge_trees(tree, scales[scale]) if scale in scales else tree
    if scale is not None and scale not in scales:
        location = Location(SET_RANK - 1, f"--scale {scale}")
        hint = (
            suggest_names(scale, list(scales), "the scales are")
            if scales
            else "leave --scale out: the file has no `scales`"
        )
        mistakes.append(Mistake(location, f'there is no scale "{scale}"', hint))
    merged, wrong = apply_settings(merged, settings)
    examined = examine_tree(merged, bases)
    mistakes += [*wrong, *examined.mistakes]
    for name, scale_tree in scales.items():
        if name != scale:
            # Adds only errors in the scale itself: the other parts of the file were checked above.
            of_scale = set(list_locations(scale_tree))
            checked = examine_tree(merge_trees(tree, scale_tree), bases)
            mistakes += [mistake for mistake in checked.mistakes if mistake.location in of_scale]
    return require_valid(examined, mistakes)


def find_moved(path: Path) -> Path:
    """The path of an experiment, which may have been moved; an existing path is returned unchanged."""
    new_path = path.parent / FORMER_FOLDER / path.name
    return new_path if not path.exists() and new_path.is_file() else path


def load_command(document: Mapping[str, Any], command: str) -> Loaded:
    """The experiment that corresponds to a front end's command line. Raises ExperimentError with all errors."""
    tree, mistakes = read_value(json.dumps(document), Location(0, command))
    assert isinstance(tree, MappingNode), "the document is a mapping"
    examined = examine_tree(expand_tree(tree), (Path(),))
    return require_valid(examined, [*mistakes, *examined.mistakes])


def require_valid(examined: Context, mistakes: Sequence[Mistake]) -> Loaded:
    """The validated experiment. Raises ExperimentError with all errors."""
    if mistakes:
        raise ExperimentError(mistakes)
    warnings = tuple(sorted(examined.warnings, key=lambda warning: warning.location))
    return Loaded(examined.experiment, warnings, compare.guarantees_by_dimension(examined))


def change_question(question: Question, settings: Sequence[str]) -> Question:
    """The question of existing results, with `key=value` overriding its `compare.…`, `claims` and `checks.…`.

    Raises ExperimentError for an invalid value, or for a key that only a new run can change.
    """
    location = Location(SET_RANK - 1, "--set")
    minimal, _ = read_value("{systems: {none: {}}, workload: {}}", location)
    assert isinstance(minimal, MappingNode), "the text is a mapping"
    tree, mistakes = apply_settings(expand_tree(minimal), settings)
    for key in tree.entries:
        if key not in (*CHANGEABLE, "systems", "workload"):
            message, hint = f"{key} cannot be changed after the run", f"set only {', '.join(CHANGEABLE)}"
            mistakes.append(Mistake(tree.keys[key], message, hint))
    shaped = shape_tree(tree)
    if mistakes := [*mistakes, *shaped.mistakes]:
        raise ExperimentError(mistakes)
    question_of_view = shaped.experiment.question_for_judge()
    # `guarantees` is stored as the question's `promises`, as in older results.
    names = {"promises" if key == "guarantees" else key for key in shaped.experiment.compare.model_fields_set}
    changed: dict[str, Any] = {key: getattr(question_of_view, key) for key in names}
    if changed.get("by", question.by) != question.by:
        # The recorded guarantees belong to the dimension that was compared before, so they no longer apply.
        changed = {"promises": (), **changed}
    changed |= {key: getattr(question_of_view, key) for key in ("claims",) if key in tree.entries}
    checks = {
        check: {**question.checks.get(check, {}), **settings} for check, settings in question_of_view.checks.items()
    }
    return replace(question, **changed, checks={**question.checks, **checks})


def split_scales(tree: MappingNode, mistakes: list[Mistake]) -> tuple[MappingNode, dict[str, MappingNode]]:
    """The document without its scales, and the scales by name, all with short forms expanded."""
    scales = tree.entries.get("scales")
    rest = replace(tree, entries={key: value for key, value in tree.entries.items() if key != "scales"})
    by_name: dict[str, MappingNode] = {}
    if isinstance(scales, MappingNode):
        for name, section in scales.entries.items():
            if isinstance(section, MappingNode):
                by_name[name] = expand_tree(section)
            elif isinstance(section, Scalar) and section.value is None:
                by_name[name] = MappingNode({}, {}, section.location)
            else:
                got = quote_value(section.value) if isinstance(section, Scalar) else "a list"
                hint = f"write the keys that differ from the file, like `{name}: {{measure: {{duration: 2s}}}}`"
                mistakes.append(Mistake(scales.keys[name], f"scales.{name} must be a mapping, got {got}", hint))
    elif scales is not None and not (isinstance(scales, Scalar) and scales.value is None):
        hint = "write `scales: {small: {measure: {duration: 2s}}}`"
        mistakes.append(Mistake(tree.keys["scales"], "scales must be a mapping from names to keys", hint))
    return expand_tree(rest), by_name
