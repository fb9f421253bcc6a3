"""The expected number and size of the rows that statements with generated values write and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from loadstone.workloads.distribution import parse_distribution

# The mean size of a value without `size`, in bytes: text and blobs have 4 to 8 bytes, and numbers have 4 or 8.
VALUE_BYTES = 6


def row_bytes(table: Mapping[str, Any]) -> float:
    """The mean size of a row, in bytes. Includes only listed columns, because only the server knows all columns."""
    sizes = [mean_of(column["size"]) if "size" in column else VALUE_BYTES for column in table["columns"]]
    return max(sum(sizes), VALUE_BYTES)


def row_count(table: Mapping[str, Any]) -> float:
    """The expected number of rows in a partition: the product of the value counts of its clustering columns."""
    return prod(mean_of(column.get("cluster")) for column in table["columns"])


def operation_bytes(work: Mapping[str, Any]) -> int:
    """The mean size of the rows that an operation writes or reads, in bytes."""
    tables = {table["name"]: table for table in work["tables"]}
    weights = [float(operation["weight"]) for operation in work["operations"]]
    sizes = [
        rows_per_operation(operation["work"], tables[operation["table"]], work.get("visits", 1))
        * row_bytes(tables[operation["table"]])
        for operation in work["operations"]
    ]
    total = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
    return round(total / sum(weights))


def rows_per_operation(operation: Any, table: Mapping[str, Any], visits: int) -> float:
    """The expected number of rows that an operation writes or reads.

    A query reads the rows of a partition, unless it has a limit or compares every clustering column with a value.
    """
    rows = row_count(table)
    if operation == "insert":
        insert = table.get("insert", {})
        select = insert.get("select")
        share = min(mean_of(select["distribution"]) / select["divisor"], 1.0) if select else 1.0
        return mean_of(insert.get("partitions")) * max(rows * share / visits, 1.0)
    if "token_range" in operation:
        return float(operation["token_range"]["page_rows"])
    text = operation["query"]["cql"] if "query" in operation else ""
    if limit := re.search(r"\blimit\s+(\d+)", text, re.IGNORECASE):
        return min(rows, int(limit[1]))
    clustering = [column["name"] for column in table["columns"] if column.get("cluster")]
    is_row = all(re.search(rf'\b{re.escape(name)}"?\s*=\s*\?', text, re.IGNORECASE) for name in clustering)
    return 1.0 if is_row else rows


def mean_of(distribution: str | None) -> float:
    """The mean of a distribution, at least 0; 1 without a distribution."""
    return 1.0 if distribution is None else max(parse_distribution(distribution).mean, 0.0)


def mean_size(size: str) -> int:
    """The mean size of a value, in bytes."""
    return int(mean_of(size))
