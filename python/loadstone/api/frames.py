"""Arrow tables as data frames of other libraries, which are imported late, and settings as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


def format_setting(value: Any) -> str:
    """A value as `--set` reads it: text unchanged, everything else as JSON, which is valid YAML."""
    return value if isinstance(value, str) else json.dumps(value)


def convert_to_polars(table: pa.Table) -> polars.DataFrame:
    """An Arrow table as a Polars data frame. Raises LoadstoneError without Polars."""
    try:
        import polars
    except ImportError:
        raise LoadstoneError("Polars is not installed", "`pip install polars`") from None
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame), "a table is a data frame"
    return frame


def convert_to_pandas(table: pa.Table) -> pandas.DataFrame:
    """An Arrow table as a pandas data frame. Raises LoadstoneError without pandas."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise LoadstoneError("pandas is not installed", "`pip install pandas`") from None
    frame: pandas.DataFrame = table.to_pandas()
    return frame
