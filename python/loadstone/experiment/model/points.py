"""The points of an experiment: the combinations of dimension values that are tested."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from loadstone.experiment.model.experiment import Experiment, Vary
from loadstone.experiment.model.values import Scalar

Point = dict[str, Scalar]


def distinct_values(vary: Vary) -> dict[str, tuple[Scalar, ...]]:
    """Every dimension with its distinct values, in the order of the file."""
    distinct: dict[str, dict[Scalar, None]] = {
        name: dict.fromkeys(values) for name, values in {**vary.combine_dimensions(), **vary.zip}.items()
    }
    for point in vary.include:
        for name, value in point.items():
            distinct.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in distinct.items()}


def count_points(vary: Vary) -> int:
    """The number of points before exclusions."""
    rows = min((len(values) for values in vary.zip.values()), default=1)
    return math.prod(len(values) for values in vary.combine_dimensions().values()) * rows + len(vary.include)


def list_points(vary: Vary) -> list[Point]:
    """All points, in the order of the file: the last dimension changes fastest."""
    points: list[Point] = []
    if vary.combine_dimensions() or vary.zip:
        rows = list(zip(*vary.zip.values(), strict=False)) if vary.zip else [()]
        names = [*vary.combine_dimensions(), *vary.zip]
        for crossed, row in itertools.product(itertools.product(*vary.combine_dimensions().values()), rows):
            point = dict(zip(names, (*crossed, *row), strict=True))
            if not any(has_values(point, excluded) for excluded in vary.exclude):
                points.append(point)
    order = list(distinct_values(vary))
    points += [{name: point[name] for name in order if name in point} for point in vary.include]
    return points


def drop_fraction(value: float | None) -> float | None:
    """Converts a whole number to an integer, as commands require: 10, not 10.0."""
    return int(value) if value is not None and value == int(value) else value


def has_values(point: Mapping[str, Scalar], partial: Mapping[str, Scalar]) -> bool:
    """Whether a point has all these values."""
    return all(name in point and point[name] == value for name, value in partial.items())


def find_duplicates(values: Sequence[Scalar]) -> list[int]:
    """The indices of values that repeat an earlier value, or have the same text as an earlier value."""
    earlier: set[Scalar] = set()
    repeated = []
    for i, value in enumerate(values):
        # 1 and "1" differ, but not in a path; 1 and 1.0 are equal, but differ in a path.
        if value in earlier or str(value) in earlier:
            repeated.append(i)
        earlier |= {value, str(value)}
    return repeated


def template_values(experiment: Experiment, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The values for template names in a variant, except values known only at run time; unset keys have no value."""
    system = experiment.systems.get(str(point.get("system", "")))
    by_name = {
        "clients": experiment.clients,
        "durability": experiment.durability,
        "arrival": experiment.arrival,
        "placement": experiment.fleet.placement,
        "rate": drop_fraction(experiment.constant_rate),
        "operations": experiment.measure.operations,
        "duration": drop_fraction(experiment.measure.duration),
        **experiment.vary.settings_at(point),
        **point,
        "store": system.store if system else None,
    }
    return {name: value for name, value in by_name.items() if value is not None}
