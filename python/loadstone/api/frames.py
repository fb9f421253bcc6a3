"""Converts Arrow tables to data frames of other libraries (imported late), and settings to text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

from loadstone.errors import LoadstoneError
from loadstone.format.suggestion import suggest_names

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


# Keys whose values are text. These values are always quoted, because they may contain YAML syntax.
TEXT_KEYS = ("question",)


def format_setting(key: str, value: Any) -> str:
    """Formats a key and its value for `--set`: strings as written, all other values as JSON, which is valid YAML.

    A string such as `5s` or `[1, 4]` is parsed as on the command line, unless the key requires text.
    """
    is_plain = isinstance(value, str) and key not in TEXT_KEYS
    return f"{key}={value if is_plain else json.dumps(value)}"


def require_table(name: str, names: Any) -> str:
    """Returns the table's name. Raises LoadstoneError unless `names`, a `Literal`, contains the name."""
    if name not in get_args(names):
        raise LoadstoneError(f'there is no table "{name}"', suggest_names(name, get_args(names), "the tables are"))
    return name


def convert_to_polars(table: pa.Table) -> polars.DataFrame:
    """Converts an Arrow table to a Polars data frame. Raises LoadstoneError if Polars is not installed."""
    try:
        import polars
    except ImportError:
        raise LoadstoneError("Polars is not installed", "run `pip install polars`") from None
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame), "a table is a data frame"
    return frame


def convert_to_pandas(table: pa.Table) -> pandas.DataFrame:
    """Converts an Arrow table to a pandas data frame. Raises LoadstoneError if pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise LoadstoneError("pandas is not installed", "run `pip install pandas`") from None
    frame: pandas.DataFrame = table.to_pandas()
    return frame
