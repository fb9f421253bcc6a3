"""The guide on importing says what the importers do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imports_support import one, written
from loadstone.importers import unit
from loadstone.importers.read import FORMATS, read

GUIDE = (Path(__file__).parents[1] / "docs" / "guides" / "importing-results.md").read_text()


def indented(start: str) -> str:
    """The block of the guide that starts with a line, without its indent."""
    at = GUIDE.index(f"    {start}")
    return re.sub(r"(?m)^    ", "", GUIDE[at:].partition("\n\n")[0]) + "\n"


def test_every_format_has_its_row() -> None:
    assert re.findall(r"(?m)^\| `([a-z-]+)` \| .* \| .* \|$", GUIDE)[: len(FORMATS)] == list(FORMATS)


def test_its_units_are_known_and_mb_is_as_documented() -> None:
    table = GUIDE[GUIDE.index("| units |") : GUIDE.index("Upper and lower case")]
    for name in re.findall(r"[A-Za-zµ%]+(?:/[a-z]+)?(?=[,;|]| or| \|)", table.partition("| time |")[2]):
        if name not in ("rates", "sizes", "bandwidth", "shares", "s"):
            assert unit.base(name)
    for text in ("MB/s is 1,000,000", "MiB/s is 1,048,576", "Mb/s is 125,000"):
        assert text in GUIDE
        name, _, number = text.partition(" is ")
        assert unit.base(name) == (float(number.replace(",", "")), "B/s")
    assert all(unit.base(each) for each in unit.KNOWN.split(", "))


def test_its_table_and_its_facts_are_read(tmp_path: Path) -> None:
    result = one(written(tmp_path, indented("variant,repeat"), "table.csv")).result
    assert (result.value("throughput"), result.value("read.mean"), result.clients) == (68848.71, 731_000, 20)
    rows = "metric,unit,value,variant\nread.bandwidth,MB/s,1803.99,no-px\nread.bandwidth,MB/s,266.38,px\n"
    path = written(tmp_path, rows, "hdfs.csv")
    written(tmp_path, indented("tool: testdfsio"), "hdfs.facts.yaml")
    found = [each.result for each in read(path, {})]
    assert [result.fact("device_read_bps") for result in found] == pytest.approx([1690.2e6, 1051.2e6])
    assert [result.fact("network_bps") for result in found] == pytest.approx([125e6, 1250e6])


def test_every_note_it_names_is_one(tmp_path: Path) -> None:
    source = "".join(path.read_text() for path in Path(unit.__file__).parent.glob("*.py"))
    for name in ("percentiles-left-out", "counts-failures", "service-time", "coarse"):
        assert f"`{name}`" in GUIDE
        assert f'"{name}"' in source
