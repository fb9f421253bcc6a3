"""`vary`: its keys, and its points, which are the combinations of dimension values that are tested."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from pydantic import Field

from loadstone.experiment.model.values import FilePart, Scalar, Value

Point = dict[str, Scalar]


class Vary(FilePart):
    """The parameters that differ between variants; the short form has them directly below `vary`."""

    matrix: dict[str, tuple[Value, ...]] = Field(
        default={}, examples=[{"system": ["rocksdb", "lmdb"], "letter": ["a", "c"]}]
    )
    """Dimensions with their values; every combination is a variant."""

    zip: dict[str, tuple[Value, ...]] = Field(default={}, examples=[{"clients": [1, 2], "rate": [1000, 2000]}])
    """Dimensions whose values are paired: the first value with the first value, and so on."""

    named: dict[str, dict[str, dict[str, Value]]] = Field(
        default={}, examples=[{"setting": {"one copy": {"copies": 1, "level": "ONE"}}}]
    )
    """Dimensions whose values are names of settings. Each name sets several values for use in templates."""

    include: tuple[dict[str, Value], ...] = Field(default=(), examples=[[{"system": "lmdb", "letter": "b"}]])
    """Additional variants, each with a value for every dimension."""

    exclude: tuple[dict[str, Value], ...] = Field(default=(), examples=[[{"system": "lmdb", "letter": "c"}]])
    """Exclude all variants with these values."""

    def combine_dimensions(self) -> dict[str, tuple[Value, ...]]:
        """The dimensions whose combinations form the variants."""
        return {**self.matrix, **{dimension: tuple(names) for dimension, names in self.named.items()}}

    def settings_at(self, point: Mapping[str, Value]) -> dict[str, Value]:
        """The values that the named settings at a point set for templates."""
        settings: dict[str, Value] = {}
        for dimension, names in self.named.items():
            settings |= names.get(str(point.get(dimension)), {})
        return settings


# The keys of the long form of `vary`.
LONG = tuple(Vary.model_fields)


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
