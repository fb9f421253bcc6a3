"""Every YCSB command line of the hand-written reports, on an HBase like theirs.

A line runs through `loadstone ycsb` as its author typed it, but for the leading `bin/`, what a shell makes of it (its
file of results), the directory of the site files, which is this machine's, and a last `-p` that makes its counts small.
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
# The last line of each workload, among them lines on pre-split tables. `make soak` runs all.
SHORT = {re.split(r" -P (\S+)", line)[1]: line for line in RUNS}.values()
SITE = "/etc/hbase/conf"
RECORDS, OPERATIONS = 1000, 2000
SMALL = ("-p", f"recordcount={RECORDS}", "-p", f"operationcount={OPERATIONS}")
COLLECTORS = ("G1_Young_Generation", "G1_Old_Generation")
# What each workload's operations are counted as.
KINDS = {
    "workloada": ("READ", "UPDATE"),
    "workload_writeonly": ("INSERT",),
    "workload_mix": ("READ", "INSERT"),
    "workload_readonly": ("READ",),
}


@pytest.fixture(scope="module")
def hbase() -> Iterator[Up]:
    # HBase takes 2 MB for each region that is written to, and there are 504.
    with up("hbase", heap="4g") as system:
        yield system


@pytest.fixture(scope="module")
def tables(hbase: Up, module_chosen: None, tmp_path_factory: pytest.TempPathFactory) -> Up:
    """The thread sweep's tables: the first as it was loaded there, the others with the splits of their reports."""
    create = ("hbase", "create-table", "--recreate")
    hbase.systems(*create, "usertable", "family")
    for table in ("usertableSplit", "usertableSplitTest"):
        assert hbase.systems(*create, table, "family", "--splits", "200").stdout == f"{table} 201 regions\n"
    home = laid_out(tmp_path_factory.mktemp("sweep"))
    (line,) = [line for line in LINES if line.startswith("ycsb load hbase14")]
    for table in ("usertable", "usertableSplit", "usertableSplitTest"):
        result = typed(hbase, home, line, "-p", f"table={table}")
        assert result.returns("INSERT") == {"OK": RECORDS}
        assert [warning.partition(" ")[0] for warning in result.messages("warning: ")] == ["threads=10"]
    return hbase


def laid_out(home: Path) -> Path:
    """A directory as the reports' authors had it."""
    shutil.copytree(ROOT / "workloads", home / "workloads")
    (home / "pointdata").mkdir()
    return home


def typed(hbase: Up, home: Path, line: str, *more: str) -> CommandResult:
    """A line as it was typed, which must succeed."""
    conf = hbase.properties["hbase.conf"]
    # Where a line names no site files, its author had put them into YCSB's own directory.
    site = () if SITE in line else ("-cp", conf)
    start = time.monotonic()
    arguments = [*shlex.split(line.replace(SITE, shlex.quote(conf))), *site, *SMALL, *more]
    done = run_command(arguments, home, environment(hbase.root), 120)
    result = CommandResult(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
    assert result.code == 0, f"{line}\n{result.err}"
    assert "panicked" not in result.err, result.err
    assert result.messages("error: ") == []
    return result


def collected(result: CommandResult) -> None:
    """The report has the collectors of HBase's own client, and they add up."""
    found = {metric for metric, _, _ in result.report() if metric.startswith("TOTAL_GC")}
    kinds = ("TOTAL_GCS", "TOTAL_GC_TIME", "TOTAL_GC_TIME_%")
    totals = {"TOTAL_GCs", "TOTAL_GC_TIME", "TOTAL_GC_TIME_%"}
    assert found == totals | {f"{kind}_{name}" for kind in kinds for name in COLLECTORS}
    for total, kind, unit in (("TOTAL_GCs", "TOTAL_GCS", "Count"), ("TOTAL_GC_TIME", "TOTAL_GC_TIME", "Time(ms)")):
        assert result.value(total, unit) == sum(result.value(f"{kind}_{name}", unit) for name in COLLECTORS)
    assert result.value("TOTAL_GC_TIME_%", "Time(%)") >= 0


def clients(line: str) -> int:
    """How many clients a line asks for; `-p threads=10` asks for none, here as in YCSB."""
    found = re.search(r"(?:-threads |threadcount=)(\d+)", line)
    return int(found[1]) if found else 1


def test_the_load_of_the_report_on_accelerated_writes(hbase: Up, chosen: None, tmp_path: Path) -> None:
    created = hbase.systems("hbase", "create-table", "usertable", "cf", "--splits", "100")
    assert created.stdout == "usertable 101 regions\n"
    (line,) = [line for line in LINES if " hbase12 " in line]
    result = typed(hbase, laid_out(tmp_path), line)
    assert result.messages("warning: ") == []
    assert result.returns("INSERT") == {"OK": RECORDS}
    assert result.value("INSERT", "Operations") == RECORDS
    assert result.value("CLEANUP", "Operations") == 4
    collected(result)
    # `-s`: a last line on what was done, as the report has it.
    (last,) = [each for each in result.err.splitlines() if f" {RECORDS} operations; " in each][-1:]
    assert re.search(rf"\d+ sec: {RECORDS} operations; .*\[INSERT: Count=\d+, Max=\d+, Min=\d+, Avg=", last), last
    assert "regions 101" in result.messages("Store: ")[0]


@pytest.mark.parametrize(
    "line", [line if line in SHORT else pytest.param(line, marks=pytest.mark.soak) for line in RUNS]
)
def test_a_run_of_the_thread_sweep(tables: Up, chosen: None, tmp_path: Path, line: str) -> None:
    result = typed(tables, laid_out(tmp_path), line)
    # Runs on the same data insert over the records of earlier runs.
    assert all("the inserts of this run begin at" in warning for warning in result.messages("warning: "))
    kinds = KINDS[line.split(" -P workloads/")[1].split()[0]]
    returned = {kind: result.returns(kind) for kind in kinds}
    assert all([*each] == ["OK"] for each in returned.values()), returned
    assert sum(each["OK"] for each in returned.values()) == OPERATIONS
    assert {*result.metrics()} == {*kinds, "CLEANUP"}
    collected(result)
    if "measurementtype=raw" in line:
        for kind in (*kinds, "CLEANUP"):
            expected = returned[kind]["OK"] if kind in kinds else clients(line)
            assert result.value(kind, "Total Operations") == expected
        raw_points(tmp_path, line, {kind: each["OK"] for kind, each in returned.items()})
    else:
        assert result.value("CLEANUP", "Operations") == clients(line)
        for kind in kinds:
            time_series(result, kind, returned[kind]["OK"])


def raw_points(home: Path, line: str, done: dict[str, int]) -> None:
    """The file that the line names has a point for each operation."""
    named = re.search(r"measurement\.raw\.output_file=(\S+)", line)
    assert named
    rows = [row.split(",") for row in (home / named[1]).read_text().splitlines()]
    for kind, count in done.items():
        points = [row for row in rows if row[0] == kind]
        # And a heading.
        assert len([row for row in points if row[1].strip().isdigit()]) == count
        assert all(int(row[2]) > 0 for row in points if row[1].strip().isdigit())


def time_series(result: CommandResult, kind: str, done: int) -> None:
    """Averages over slices of two seconds, beside the count."""
    assert result.value(kind, "Operations") == done
    slices = [(int(name), float(value)) for metric, name, value in result.report() if metric == kind and name.isdigit()]
    assert [start for start, _ in slices] == [2000 * number for number in range(len(slices))]
    assert slices
    assert all(value > 0 for _, value in slices)
