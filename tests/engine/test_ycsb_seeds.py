"""Every YCSB command line of the hand-written reports runs with another store and smaller counts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conftest import FIXTURES, Engine

COMMANDS = (FIXTURES / "seeds/commands.txt").read_text().splitlines()
# Each command line up to the shell's redirection or pipe, without `bin/ycsb`.
LINES = [re.split(r" [>|] ", line)[0].removeprefix("bin/ycsb ") for line in COMMANDS]
SMALL = ("recordcount=2000", "operationcount=2000")


@pytest.fixture(scope="module")
def tables(module_engine: Engine) -> Engine:
    """A RocksDB with the reports' tables, in a directory with the layout of the reports' authors."""
    (module_engine.home / "pointdata").mkdir()
    (module_engine.home / "workloads").mkdir()
    for file in [*module_engine.workloads.iterdir(), *(FIXTURES / "seeds").glob("workload_*")]:
        (module_engine.home / "workloads" / file.name).write_bytes(file.read_bytes())
    for table in ("usertable", "usertableSplit"):
        module_engine(f"load rocksdb -P workloads/workloada rocksdb.dir=db table={table}", *SMALL)
    return module_engine


def split_line(engine: Engine, line: str, *more: str) -> list[str]:
    """The arguments of a line as the shell passes them, with the test's additions at the end."""
    return [str(engine.program), "ycsb", *shlex.split(line), *(word for pair in more for word in ("-p", pair))]


@pytest.mark.parametrize("line", [line for line in LINES if " hse " not in line])
def test_seed_command_runs_with_rocksdb_instead_of_hbase(
    tables: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    directory = tmp_path / "db" if line.startswith("load") else tables.home / "db"
    arguments = split_line(tables, re.sub(r"hbase1\d", "rocksdb", line), f"rocksdb.dir={directory}", *SMALL)
    monkeypatch.setattr(tables, "arguments", lambda *_: arguments)
    result = tables(line)
    operations = "Total Operations" if "=raw" in line else "Operations"
    done = sum(result.value(metric, operations) for metric in result.metrics() if metric != "CLEANUP")
    assert done == 2000
    threads = re.search(r"thread(?:s|count)[ =](\d+)", line.replace("-p threads=10", ""))
    assert result.value("CLEANUP", operations) == (int(threads[1]) if threads else 1)
    assert not result.messages("error: ")
    # One warning for each property that only HBase's binding supports, and no other warning.
    strange = [word for word in ("-p columnfamily=", "-p threads=", "-cp ") if word in line]
    # Runs on the same data overwrite records that earlier runs inserted, with a separate warning.
    warnings = [
        warning for warning in result.messages("warning: ") if "the inserts of this run begin at" not in warning
    ]
    assert len(warnings) == len(strange)


def test_raw_file_is_written_as_requested(tables: Engine) -> None:
    tables(
        "run rocksdb -P workloads/workload_writeonly rocksdb.dir=other measurementtype=raw",
        *SMALL,
        "measurement.raw.output_file=./pointdata/mine",
    )
    assert len((tables.home / "pointdata/mine").read_text().splitlines()) == 2000 + 1 + 2


def test_threads_property_is_reported_as_ineffective(engine: Engine) -> None:
    result = engine("load null -P workloads/workloada threads=10")
    assert result.messages("warning: ") == [
        "threads=10 has no effect, here as in YCSB: 1 client runs (-p threads); use -threads 10 or -p threadcount=10"
    ]
    assert result.value("CLEANUP", "Operations") == 1, "the warning is true"


def test_column_family_is_reported_as_ineffective(engine: Engine) -> None:
    result = engine("load null -P workloads/workloada columnfamily=cf -cp /etc/hbase/conf")
    assert result.messages("warning: ") == [
        "unknown property columnfamily for the store null (-p columnfamily); leave it out, as it has no effect",
        "-cp has no effect: the store null does not run in a JVM",
    ]


@pytest.mark.parametrize("line", [line for line in LINES if " hse " in line])
def test_options_of_hse_1_are_refused_with_successors(engine: Engine, line: str) -> None:
    result = engine.run(line)
    assert (result.code, result.out) == (2, "")
    assert result.messages("error: ") == [
        "only HSE 1 has hse.mpool_name and hse.config_path; "
        "since HSE 2.0 a KVDB is kept in a directory, not in an mpool"
    ]
    assert result.messages("hint: ") == [
        "write -p hse.kvdb_home=DIRECTORY -p hse.config=kvdb.kvs.default.prefix.length=7"
    ]
    assert list(engine.home.iterdir()) == []


def test_chinese_comments_in_a_workload_file_are_accepted(engine: Engine) -> None:
    file = FIXTURES / "seeds/workload_documented"
    result = engine("run null -P", str(file), "operationcount=1000", "recordcount=1000")
    assert result.messages("warning: ") == []
    assert result.value("READ", "Operations") == 950
    assert "LatencyVariance(us)" in result.out, "the file asks for histograms"
