"""Converts Arrow tables to data frames of other libraries (imported late), and settings to text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


def format_setting(value: Any) -> str:
    """A value in the form that `--set` reads: text unchanged, everything else as JSON, which is valid YAML."""
    return value if isinstance(value, str) else json.dumps(value)


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
