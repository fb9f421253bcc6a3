"""Joins several result sets, so that they can be compared: a trial's origin becomes the dimension `run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from loadstone.results.folder import IMPORTED
from loadstone.results.result_set import Question, ResultSet, number_keys, variant_key
from loadstone.results.trial_result import Scalar, Series, TrialResult

RUN = "run"


def join_results(sides: Sequence[ResultSet | Sequence[ResultSet]]) -> ResultSet:
    """One set with all trials, and with the first side as the baseline. A side is one set, or one set per run.

    A dimension that identifies the run adds nothing to `run`, and is omitted, so that two files with one variant each
    can be compared.
    """
    grouped = [[results_of] if isinstance(results_of, ResultSet) else list(results_of) for results_of in sides]
    sets = [results for side in grouped for results in side]
    labels = distinct_names(label_sets(sets))
    side_of: list[str] = []
    for side, name in zip(grouped, name_sides(labels, [len(side) for side in grouped]), strict=True):
        side_of += [name] * len(side)
    redundant = {name for results in sets for name in results.dimensions if identifies_run(name, sets)}
    by_label = dict(zip(labels, sets, strict=True))

    def series_of(trial: str) -> Series | None:
        name, _, own = trial.partition(":")
        return by_label[name].series(own)

    def files_of(trial: str) -> Path | None:
        name, _, own = trial.partition(":")
        return by_label[name].files(own)

    def log_of(trial: str) -> Path | None:
        name, _, own = trial.partition(":")
        return by_label[name].log(own)

    trials: list[TrialResult] = []
    own: dict[str, Question] = {}
    runs: dict[str, str] = {}
    repeats: Counter[tuple[tuple[str, Scalar], ...]] = Counter()
    for name, named, results in zip(labels, side_of, sets, strict=True):
        before = dict(repeats)
        for trial in results.trials:
            config: dict[str, Scalar] = {RUN: named}
            config.update({key: value for key, value in trial.config.items() if key not in redundant})
            repeat = trial.repeat + before.get(variant_key(config), 0)
            repeats[variant_key(config)] = max(repeats[variant_key(config)], repeat)
            trials.append(replace(trial, trial=f"{name}:{trial.trial}", config=config, repeat=repeat))
            own[trials[-1].trial] = results.question
            if results.is_one_run:
                runs[trials[-1].trial] = name
    environments = {name: dict(results_of.environment) for name, results_of in zip(labels, sets, strict=True)}
    metrics = tuple(dict.fromkeys(metric for results in sets for metric in results.question.metrics))
    expect = tuple(dict.fromkeys(text for results in sets for text in results.question.expect))
    return ResultSet(
        name=" and ".join(dict.fromkeys(side_of)),
        trials=trials,
        question=Question(by=RUN, baseline=side_of[0], metrics=metrics, at_least=1, expect=expect),
        own=own,
        runs=runs,
        interleaved=False,
        environment={"environment": 1, "runs": environments},
        series=series_of,
        files=files_of,
        log=log_of,
        warnings=tuple(warning for results in sets for warning in results.warnings),
    )


def label_sets(sets: Sequence[ResultSet]) -> list[str]:
    """A name for each set; files with equal names in different directories are named with their directories."""
    labels = [results.name if results.path is None else label_results(results) for results in sets]
    paths = [results.path.resolve() for results in sets if results.path is not None and results.path.is_file()]
    if len(set(labels)) == len(labels) or len(paths) < len(sets):
        return labels
    for level in range(min(len(path.parents) for path in paths)):
        parents = [path.parents[level].name for path in paths]
        longer = [f"{parent}/{label}" for parent, label in zip(parents, labels, strict=True)]
        if all(parents) and len(set(longer)) == len(longer):
            return longer
    return labels


def label_results(results: ResultSet) -> str:
    """A short name: the experiment and time of a folder, the name of an import, or the name of a file."""
    path = results.path or Path(results.name)
    if path.parent.name == IMPORTED:
        return results.name
    return "/".join(filter(None, (path.parent.name, path.name))) if path.is_dir() else path.stem


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, made unique by numbers. Colons are replaced, because they separate names from trials."""
    clean = [name.replace(":", "-") for name in names]
    return [
        f"{name}#{number}" if clean.count(name) > 1 else name
        for name, number in zip(clean, number_keys(clean), strict=True)
    ]


def name_sides(labels: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Each side's name: the common prefix of its runs' names (`tuned` for tuned-1 and tuned-2), or the first name."""
    names, shared = [], []
    for size in sizes:
        own, labels = labels[:size], labels[size:]
        names.append(own[0])
        # Digits at the end of the common prefix belong to the runs' numbers; other digits, and digits in the
        # name of a directory, may be a version.
        common, slash, _ = common_beginning(own).partition("/")
        common = common if slash else common.rstrip("0123456789").rstrip(" .-_#")
        shared.append(common if size > 1 else own[0])
    return shared if all(shared) and len({*shared}) == len(shared) else names


def common_beginning(names: Sequence[str]) -> str:
    """The longest common prefix of all names."""
    pairs = zip(min(names), max(names), strict=False)
    return "".join(letter for letter, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def identifies_run(name: str, sets: Sequence[ResultSet]) -> bool:
    """Whether a dimension has at most one value in each set, and not the same value in all sets."""
    run_values = [results.dimensions.get(name, []) for results in sets]
    return all(len(values) <= 1 for values in run_values) and len({tuple(values) for values in run_values}) > 1
