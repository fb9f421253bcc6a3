"""Every YCSB command line of the hand-written reports, on HBase with the same configuration.

A line runs through `loadstone ycsb` as its author typed it, with four changes: without the leading `bin/`, without
the shell's redirection to a file, with this machine's directory of site files, and with a final `-p` for small counts.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_server import run_command
from conftest import FIXTURES, ROOT, CommandResult
from systems_support import Up, environment, up

COMMANDS = [line for line in (FIXTURES / "seeds/commands.txt").read_text().splitlines() if " hbase1" in line]
LINES = [re.split(r" [>|] ", line)[0].removeprefix("bin/") for line in COMMANDS]
RUNS = [line for line in LINES if line.startswith("ycsb run ")]
# The last line of each workload, including lines on pre-split tables. `make soak` runs all.
SHORT = {re.split(r" -P (\S+)", line)[1]: line for line in RUNS}.values()
SITE = "/etc/hbase/conf"
RECORDS, OPERATIONS = 1000, 2000
SMALL = ("-p", f"recordcount={RECORDS}", "-p", f"operationcount={OPERATIONS}")
COLLECTORS = ("G1_Young_Generation", "G1_Old_Generation")
# The operations that each workload counts.
KINDS = {
    "workloada": ("READ", "UPDATE"),
    "workload_writeonly": ("INSERT",),
    "workload_mix": ("READ", "INSERT"),
    "workload_readonly": ("READ",),
}


@pytest.fixture(scope="module")
def hbase() -> Iterator[Up]:
    # HBase takes 2 MB for each region that is written, and there are 504.
    with up("hbase", heap="4g") as system:
        yield system


@pytest.fixture(scope="module")
def tables(hbase: Up, module_engine_variable: None, tmp_path_factory: pytest.TempPathFactory) -> Up:
    """The thread sweep's tables: the first as the sweep's author loaded it, further tables with the reports' splits."""
    create = ("hbase", "create-table", "--recreate")
    hbase.systems(*create, "usertable", "family")
    for table in ("usertableSplit", "usertableSplitTest"):
        assert hbase.systems(*create, table, "family", "--splits", "200").stdout == f"{table} 201 regions\n"
    home = laid_out(tmp_path_factory.mktemp("sweep"))
    (line,) = [line for line in LINES if line.startswith("ycsb load hbase14")]
    for table in ("usertable", "usertableSplit", "usertableSplitTest"):
        result = run_line(hbase, home, line, "-p", f"table={table}")
        assert result.returns("INSERT") == {"OK": RECORDS}
        assert [warning.partition(" ")[0] for warning in result.messages("warning: ")] == ["threads=10"]
    return hbase


def laid_out(home: Path) -> Path:
    """A directory with the layout of the reports' authors."""
    shutil.copytree(ROOT / "workloads", home / "workloads")
    (home / "pointdata").mkdir()
    return home


def run_line(hbase: Up, home: Path, line: str, *more: str) -> CommandResult:
    """Runs a line as its author typed it; it must succeed."""
    conf = hbase.properties["hbase.conf"]
    # If a line names no site files, its author had put them into YCSB's directory.
    site = () if SITE in line else ("-cp", conf)
    start = time.monotonic()
    arguments = [*shlex.split(line.replace(SITE, shlex.quote(conf))), *site, *SMALL, *more]
    done = run_command(arguments, home, environment(hbase.root), 120)
    result = CommandResult(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
    assert result.code == 0, f"{line}\n{result.err}"
    assert "panicked" not in result.err, result.err
    assert result.messages("error: ") == []
    return result


def check_collectors(result: CommandResult) -> None:
    """Checks that the report has the collectors of HBase's client, with consistent sums."""
    results = {metric for metric, _, _ in result.report() if metric.startswith("TOTAL_GC")}
    kinds = ("TOTAL_GCS", "TOTAL_GC_TIME", "TOTAL_GC_TIME_%")
    totals = {"TOTAL_GCs", "TOTAL_GC_TIME", "TOTAL_GC_TIME_%"}
    assert results == totals | {f"{kind}_{name}" for kind in kinds for name in COLLECTORS}
    for total, kind, unit in (("TOTAL_GCs", "TOTAL_GCS", "Count"), ("TOTAL_GC_TIME", "TOTAL_GC_TIME", "Time(ms)")):
        assert result.value(total, unit) == sum(result.value(f"{kind}_{name}", unit) for name in COLLECTORS)
    assert result.value("TOTAL_GC_TIME_%", "Time(%)") >= 0


def clients(line: str) -> int:
    """The number of clients that a line requests; `-p threads=10` requests none, as in YCSB."""
    match = re.search(r"(?:-threads |threadcount=)(\d+)", line)
    return int(match[1]) if match else 1


def test_the_load_of_the_report_on_accelerated_writes(hbase: Up, engine_variable: None, tmp_path: Path) -> None:
    created = hbase.systems("hbase", "create-table", "usertable", "cf", "--splits", "100")
    assert created.stdout == "usertable 101 regions\n"
    (line,) = [line for line in LINES if " hbase12 " in line]
    result = run_line(hbase, laid_out(tmp_path), line)
    assert result.messages("warning: ") == []
    assert result.returns("INSERT") == {"OK": RECORDS}
    assert result.value("INSERT", "Operations") == RECORDS
    assert result.value("CLEANUP", "Operations") == 4
    check_collectors(result)
    # `-s`: a last status line, as in the report.
    (last,) = [value for value in result.err.splitlines() if f" {RECORDS} operations; " in value][-1:]
    assert re.search(rf"\d+ sec: {RECORDS} operations; .*\[INSERT: Count=\d+, Max=\d+, Min=\d+, Avg=", last), last
    assert "regions 101" in result.messages("Store: ")[0]


@pytest.mark.parametrize(
    "line", [line if line in SHORT else pytest.param(line, marks=pytest.mark.soak) for line in RUNS]
)
def test_a_run_of_the_thread_sweep(tables: Up, engine_variable: None, tmp_path: Path, line: str) -> None:
    result = run_line(tables, laid_out(tmp_path), line)
    # Runs on the same data overwrite records that earlier runs inserted.
    assert all("the inserts of this run begin at" in warning for warning in result.messages("warning: "))
    kinds = KINDS[line.split(" -P workloads/")[1].split()[0]]
    returned = {kind: result.returns(kind) for kind in kinds}
    assert all([*counts] == ["OK"] for counts in returned.values()), returned
    assert sum(counts["OK"] for counts in returned.values()) == OPERATIONS
    assert {*result.metrics()} == {*kinds, "CLEANUP"}
    check_collectors(result)
    if "measurementtype=raw" in line:
        for kind in (*kinds, "CLEANUP"):
            expected = returned[kind]["OK"] if kind in kinds else clients(line)
            assert result.value(kind, "Total Operations") == expected
        raw_points(tmp_path, line, {kind: counts["OK"] for kind, counts in returned.items()})
    else:
        assert result.value("CLEANUP", "Operations") == clients(line)
        for kind in kinds:
            time_series(result, kind, returned[kind]["OK"])


def raw_points(home: Path, line: str, done: dict[str, int]) -> None:
    """Checks that the file named by the line has a point for each operation."""
    named = re.search(r"measurement\.raw\.output_file=(\S+)", line)
    assert named
    rows = [row.split(",") for row in (home / named[1]).read_text().splitlines()]
    for kind, count in done.items():
        points = [row for row in rows if row[0] == kind]
        # The file also has a heading.
        assert len([row for row in points if row[1].strip().isdigit()]) == count
        assert all(int(row[2]) > 0 for row in points if row[1].strip().isdigit())


def time_series(result: CommandResult, kind: str, done: int) -> None:
    """Checks the count, and that the averages cover slices of two seconds."""
    assert result.value(kind, "Operations") == done
    slices = [(int(name), float(value)) for metric, name, value in result.report() if metric == kind and name.isdigit()]
    assert [start for start, _ in slices] == [2000 * number for number in range(len(slices))]
    assert slices
    assert all(value > 0 for _, value in slices)
