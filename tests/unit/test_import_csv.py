"""CSV files with named columns, and their facts files."""

from __future__ import annotations

from pathlib import Path

import pytest

from imports_support import FIXTURES, figures, read_single, refusal, write_file
from loadstone.importers.read import Imported, read_file

HEADER = "variant,repeat,clients,metric,unit,value\n"


def busy(imported: Imported) -> float:
    """Throughput × mean latency ÷ clients: the share of clients that are waiting for an answer."""
    result = imported.result
    assert result.clients is not None
    return (result.value("throughput") or 0) * (result.value("read.mean") or 0) / 1e9 / result.clients


def test_bound_is_imported_and_unknown_bound_is_refused(tmp_path: Path) -> None:
    table = "metric,unit,value,n,bound\nread.p50,ms,3,100,\nread.p99,ms,30,100,at_least\nread.max,ms,40,100,failed\n"
    result = read_single(write_file(tmp_path, table)).result
    assert [value.bound for value in result.values.values()] == [None, "at_least", "failed"]
    message = refusal(write_file(tmp_path, table.replace("failed", "at_most")))
    assert 'bound must be at_least, failed or unanswered, got "at_most"' in message


@pytest.mark.parametrize("comment", ["  # best, run", " best of 3", " [1]", "  see ticket 42", "\uff08\u6162\uff09"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_comment_after_cell_is_named(comment: str, delimiter: str, tmp_path: Path) -> None:
    table = f"{HEADER}a,1,4,throughput,op/s,68848.71{comment}\na,1,4,read.mean,ms,0.5\n"
    result = read_single(write_file(tmp_path, table.replace(",", delimiter))).result
    assert result.value("throughput") == 68848.71
    message = next(note.message for note in result.notes if note.name == "unknown")
    assert comment.strip().replace(",", delimiter) in message


@pytest.mark.parametrize("text", ["68848 71", "1 000", "5 ms", "about 5"])
def test_unclear_value_of_table_is_refused(text: str, tmp_path: Path) -> None:
    assert "is not a number" in refusal(write_file(tmp_path, f"{HEADER}a,1,4,throughput,op/s,{text}\n"))


# The hand-written tables.


def test_read_only_tables_violate_littles_law_22_times() -> None:
    runs = read_file(FIXTURES / "hbase-read-only.csv", {})
    assert len(runs) == 34
    assert sum(not 0.85 <= busy(run) <= 1.05 for run in runs) == 22
    assert {run.result.loop for run in runs} == {"closed"}
    # 20 threads at 68,849 op/s cannot have a mean of 0.731 ms.
    impossible = next(run for run in runs if run.result.value("throughput") == 68848.71)
    assert figures(impossible) == {"throughput": (68848.71, "op/s", 0), "read.mean": (731_000, "ns", 0)}
    assert busy(impossible) == pytest.approx(2.516, abs=1e-3)


def test_varying_clients_are_a_dimension_and_tables_repeats() -> None:
    runs = read_file(FIXTURES / "hbase-read-only.csv", {})
    sweep = [run.result for run in runs if run.result.config["variant"] == "thread sweep 10M rows"]
    assert sorted({result.clients for result in sweep if result.clients}) == [10, 20, 25, 28, 30, 31, 32, 33, 35, 40]
    assert all(result.config["clients"] == result.clients for result in sweep)
    assert [result.repeat for result in sweep if result.clients == 25] == [1, 2, 3]
    assert len({run.result.trial for run in runs}) == 34


def test_hdfs_read_table_has_the_facts_of_variants() -> None:
    results = [run.result for run in read_file(FIXTURES / "hdfs-read.csv", {})]
    assert len(results) == 27
    beyond = [
        result
        for result in results
        if (result.value("read.bandwidth") or 0) > (result.numeric_fact("device_read_bps") or 0)
    ]
    assert {tuple(result.config.items()) for result in beyond} == {
        (("variant", "no-px"), ("hdfs_replication", 3), ("volume_replication", 1))
    }
    # The report states 1,803.99 MB/s for disks that fio read at 1,690.2 MB/s over a link of 1 Gbit/s.
    assert sum(result.value("read.bandwidth") or 0 for result in beyond) / 3 == pytest.approx(1803.99e6, rel=1e-6)
    assert beyond[0].facts == {
        "tool": "testdfsio",
        "bandwidth_of": "node",
        "data_nodes": 3,
        "device_read_bps": 1_690_200_000,
        "network_bps": 125_000_000,
    }
    assert {result.numeric_fact("data_nodes") for result in results if result.config["variant"] == "px"} == {5}
    assert results[0].clients is None


# Units and columns.


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("ns", 2, "ns"),
        ("us", 2_000, "ns"),
        ("µs", 2_000, "ns"),
        ("ms", 2_000_000, "ns"),
        ("S", 2_000_000_000, "ns"),
        ("ops/sec", 2, "op/s"),
        ("kop/s", 2_000, "op/s"),
        ("B/s", 2, "B/s"),
        ("MB/s", 2_000_000, "B/s"),
        ("MiB/s", 2_097_152, "B/s"),
        ("Gbit/s", 250_000_000, "B/s"),
        ("Mbps", 250_000, "B/s"),
        ("GiB", 2_147_483_648, "B"),
        ("%", 0.02, "share"),
        ("operations", 2, "operations"),
    ],
)
def test_units_become_base_units(tmp_path: Path, text: str, value: float, unit: str) -> None:
    run = read_single(write_file(tmp_path, f"metric,unit,value\nX,{text},2\n", "a.csv"))
    assert figures(run) == {"x": (value, unit, 0)}


@pytest.mark.parametrize("text", ["mb/s", "parsec", "", "MS/s"])
def test_unknown_unit_is_refused_with_the_known_ones(tmp_path: Path, text: str) -> None:
    assert refusal(write_file(tmp_path, f"metric,unit,value\nx,op/s,1\nx.max,{text},2\n", "a.csv")) == (
        f'error: unknown unit "{text}" (a.csv:3)\n'
        "hint: known units: ns, us, ms, s, op/s, kop/s, B, kB, MB, GB, KiB, MiB, GiB, "
        "B/s, MB/s, MiB/s, Mbit/s, Gbit/s, "
        "operations, %, share"
    )


def test_remaining_columns_are_dimensions_and_n_counts_operations(tmp_path: Path) -> None:
    table = "Engine,value,unit,metric,cache,n\nhse,5,ms,read.P99,1.5,1000\nrocksdb,6,ms,read.p99,2,2000\n"
    results = [run.result for run in read_file(write_file(tmp_path, table, "a.csv"), {})]
    assert [dict(result.config) for result in results] == [
        {"variant": "a", "engine": "hse", "cache": 1.5},
        {"variant": "a", "engine": "rocksdb", "cache": 2},
    ]
    assert [result.values["read.p99"].n for result in results] == [1000, 2000]


def test_without_a_column_for_them_repeats_are_counted(tmp_path: Path) -> None:
    table = (
        "variant,metric,unit,value\na,throughput,op/s,1\na,read.mean,ms,9\na,throughput,op/s,2\nb,throughput,op/s,3\n"
    )
    results = [run.result for run in read_file(write_file(tmp_path, table, "t.csv"), {})]
    assert [(result.config["variant"], result.repeat, result.value("throughput")) for result in results] == [
        ("a", 1, 1),
        ("a", 2, 2),
        ("b", 1, 3),
    ]


def test_semicolons_go_with_decimal_commas(tmp_path: Path) -> None:
    table = "\ufeffvariant;repeat;clients;metric;unit;value\r\na;1;20;read.mean;ms;0,448\r\n"
    assert read_single(write_file(tmp_path, table, "a.csv")).result.value("read.mean") == pytest.approx(448_000)


def test_a_table_in_markdown_is_found(tmp_path: Path) -> None:
    text = (
        f"# Report\n\nThe metric is clear.\n\n```csv\n{HEADER}# by hand\na,1,4,throughput,op/s,10\n```\n\nDone, a, b\n"
    )
    assert read_single(write_file(tmp_path, text, "report.md")).result.value("throughput") == 10


def test_cell_without_a_number_is_omitted_with_note(tmp_path: Path) -> None:
    run = read_single(write_file(tmp_path, f"{HEADER}a,1,4,throughput,op/s,10\na,1,4,read.p99,ms,NaN\n", "a.csv"))
    assert set(run.result.values) == {"throughput"}
    assert [(note.name, note.message) for note in run.result.notes] == [("not-a-number", "read.p99 has no value")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('a,1,4,throughput,op/s,"1,770.70"\n', 'throughput is not a number: "1,770.70" (a.csv:2)'),
        ("a,1,4,throughput,op/s,1_000\n", 'throughput is not a number: "1_000" (a.csv:2)'),
        ("a,1,four,throughput,op/s,1\n", 'clients must be a whole number of at least 1, got "four" (a.csv:2)'),
        ("a,0,4,throughput,op/s,1\n", 'repeat must be a whole number of at least 1, got "0" (a.csv:2)'),
        ("a,1,4,throughput,op/s,1,9\n", "the row has 7 cells for 6 columns (a.csv:2)"),
        ("a,1,4,throughput\n", "the row has 4 cells for 6 columns (a.csv:2)"),
        ("a,1,4,,op/s,1\n", "the row has no metric (a.csv:2)"),
        (
            "a,1,4,throughput,op/s,1\na,1,4,throughput,op/s,2\n",
            "throughput occurs twice for one variant and repeat (a.csv:3)",
        ),
        ("", "the table has no rows (a.csv:1)"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    assert refusal(write_file(tmp_path, HEADER + rows, "a.csv")).splitlines()[0] == f"error: {message}"


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = "metric,unit,value,value\nx,ms,1,2\n"
    assert 'the column "value" occurs twice (a.csv:1)' in refusal(write_file(tmp_path, table, "a.csv"))
