"""The YCSB shell, and its tables."""

from __future__ import annotations

import re

from conftest import Engine

LOAD = "load rocksdb -P workloads/workloada rocksdb.dir=db"


def test_the_shell_takes_a_script_on_stdin(engine: Engine) -> None:
    script = """
        insert alice name=Alice town=Paris
        insert bob name=Bob
        read alice
        read alice town
        update alice town=Rome
        read alice
        scan alice 2
        delete alice
        read alice
        read
        frobnicate
        table
        help
        quit
        read bob
    """
    result = engine("shell rocksdb rocksdb.dir=db", stdin=script)
    text = re.sub(r"^\d+ ms$", "- ms", result.out, flags=re.M)
    assert "Return code: OK\nname=Alice\ntown=Paris\n- ms\n" in text
    assert "Return code: OK\ntown=Paris\n- ms\n" in text
    assert "Return code: OK\nname=Alice\ntown=Rome\n- ms\n" in text
    assert "Record alice\nname=Alice\ntown=Rome\n" in text
    assert "Record bob\nname=Bob\n" in text
    assert "Return code: NOT_FOUND\n" in text
    assert "error: read takes a key\n" in text
    assert 'error: unknown command "frobnicate"' in text
    assert 'Using table "usertable"\n' in text
    assert "scan KEY COUNT" in text
    assert text.count("Return code: ") == 9, "nothing is read after quit"


def test_the_shell_changes_tables(engine: Engine) -> None:
    result = engine(
        "shell rocksdb rocksdb.dir=db",
        stdin="insert k a=1\ntable other\nread k\ninsert k a=2\ntable usertable\nread k\n",
    )
    assert re.findall(r"Return code: (\w+)", result.out) == ["OK", "NOT_FOUND", "OK", "OK"]
    assert result.out.rstrip().split("\n")[-2] == "a=1"


def test_tables_are_apart_and_the_other_ones_stay(engine: Engine) -> None:
    for table, records in (("one", 10), ("two", 20)):
        engine(f"{LOAD} table={table} recordcount={records}")
    for table, records in (("one", 10), ("two", 20)):
        result = engine(
            "shell rocksdb rocksdb.dir=db recordcount=1 operationcount=1", f"table={table}", stdin="scan ! 99\n"
        )
        assert result.out.count("\nRecord ") == records
    assert (engine.home / "db/CF_NAMES").read_text().split() == ["default", "one", "two"]
