"""Several result sets as one, so that they can be compared: a trial's origin becomes a dimension, `run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadstone.results.result_set import Question, ResultSet, numbered
from loadstone.results.trial_result import Scalar, Series, TrialResult

RUN = "run"


def union(sets: Sequence[ResultSet]) -> ResultSet:
    """One set of all trials, with the first set as the baseline; the order between sets was not randomised.

    A dimension with one value in each set, but not the same in all, adds nothing to `run`: it is
    left out, so that two files with one variant each can be compared at all.
    """
    labels = distinct([results.name if results.path is None else label(results) for results in sets])
    redundant = {name for results in sets for name in results.dimensions if known_from_run(name, sets)}
    series = {name: results.series for name, results in zip(labels, sets, strict=True)}

    def course(trial: str) -> Series | None:
        name, _, own = trial.partition(":")
        return series[name](own)

    trials: list[TrialResult] = []
    own: dict[str, Question] = {}
    for name, results in zip(labels, sets, strict=True):
        for trial in results.trials:
            config: dict[str, Scalar] = {RUN: name}
            config.update({key: value for key, value in trial.config.items() if key not in redundant})
            trials.append(replace(trial, trial=f"{name}:{trial.trial}", config=config))
            own[trials[-1].trial] = results.question
    environments = {name: dict(each.environment) for name, each in zip(labels, sets, strict=True)}
    metrics = tuple(dict.fromkeys(metric for results in sets for metric in results.question.metrics))
    return ResultSet(
        name=" and ".join(labels),
        trials=trials,
        question=Question(by=RUN, baseline=labels[0], metrics=metrics, at_least=1),
        own=own,
        interleaved=False,
        environment={"environment": 1, "runs": environments},
        series=course,
        warnings=tuple(warning for results in sets for warning in results.warnings),
    )


def label(results: ResultSet) -> str:
    """A short name: a folder's experiment and time, a file's name."""
    path = results.path or Path(results.name)
    return f"{path.parent.name}/{path.name}" if path.is_dir() else path.stem


def distinct(names: Sequence[str]) -> list[str]:
    """Names made unique by numbers, without colons, which separate them from trials."""
    clean = [name.replace(":", "-") for name in names]
    return [
        f"{name}#{number}" if clean.count(name) > 1 else name
        for name, number in zip(clean, numbered(clean), strict=True)
    ]


def known_from_run(name: str, sets: Sequence[ResultSet]) -> bool:
    """Whether a dimension has at most one value in each set, but not the same one in all."""
    found = [results.dimensions.get(name, []) for results in sets]
    return all(len(values) <= 1 for values in found) and len({tuple(values) for values in found}) > 1
