"""Data loaded by a YCSB binding in the JVM is read by Loadstone's store, and vice versa.

The binding uses RocksDB's Java API with the layout of YCSB's RocksDB binding, and the store uses the C API of the
same library.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Engine, dump
from jvm_support import ROCKSDB, compile_binding

RECORDS = 2000


@pytest.fixture(scope="module")
def binding(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The arguments that select the binding."""
    classes = compile_binding("RocksBinding", tmp_path_factory.mktemp("classes"), ROCKSDB)
    return f"jvm -db RocksBinding -cp {classes}:{ROCKSDB} jvm.networked=false rocks.dir=db"


COMMON = f"-P workloads/workloada recordcount={RECORDS} operationcount={RECORDS} dataintegrity=true fieldlength=40"
OWN = "rocksdb rocksdb.dir=db"


def test_what_a_binding_loads_our_store_verifies(engine: Engine, binding: str) -> None:
    engine(f"load {binding} -threads 4 {COMMON}")
    result = engine(f"run {OWN} {COMMON} readproportion=1 updateproportion=0")
    assert result.returns("VERIFY") == {"OK": RECORDS}
    assert len(dump(engine)) == RECORDS


# The JVM host caches field names by their place in a request and their last eight bytes. The single field of an
# update can have any name.
@pytest.mark.parametrize("prefix", ["field", "f", "longer_than_eight_"])
def test_what_our_store_loads_a_binding_verifies(engine: Engine, binding: str, prefix: str) -> None:
    common = f"{COMMON} fieldnameprefix={prefix} fieldcount=12"
    engine(f"load {OWN} {common}")
    result = engine(f"run {binding} -threads 4 {common}")
    reads = result.returns("READ")["OK"]
    assert 0 < reads < RECORDS, "some operations are updates"
    assert result.returns("VERIFY") == {"OK": reads}
    again = engine(f"run {OWN} {common} readproportion=1 updateproportion=0")
    assert again.returns("VERIFY") == {"OK": RECORDS}, "the binding's updates are correct, too"


def test_both_write_the_same_bytes(engine: Engine, binding: str, tmp_path: Path) -> None:
    engine(f"load {binding} {COMMON}")
    engine(f"load rocksdb rocksdb.dir={tmp_path / 'own'} {COMMON}")
    hosted, native = dump(engine), dump(engine, "rocksdb", str(tmp_path / "own"))
    assert hosted == native
