"""What tests of the YCSB front end share: its exit codes, its stores, and how it refuses."""

from __future__ import annotations

from conftest import Told

USAGE, FAILED, INTERRUPTED = 2, 1, 130
A = "-P workloads/workloada"
RUN = f"run null {A}"
STORES = ("rocksdb", "lmdb", "fjall", "redb")


def refused(told: Told, code: int) -> tuple[str, str]:
    """The error and the hint of a command that had to fail so."""
    assert told.code == code, told.err
    assert len(told.said("error: ")) == 1, told.err
    assert len(told.said("hint: ")) == 1, told.err
    assert told.err.splitlines()[-2:] == [f"error: {told.said('error: ')[0]}", f"hint: {told.said('hint: ')[0]}"]
    assert told.seconds < 20
    return told.said("error: ")[0], told.said("hint: ")[0]
