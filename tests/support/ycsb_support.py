"""Shared by the tests of the YCSB front end: exit codes, stores, and refusals."""

from __future__ import annotations

from conftest import CommandResult

USAGE, FAILED, INTERRUPTED = 2, 1, 130
A = "-P workloads/workloada"
RUN = f"run null {A}"
STORES = ("rocksdb", "lmdb", "fjall", "redb")


def read_refusal(result: CommandResult, code: int) -> tuple[str, str]:
    """The error and the hint of a command that must have failed with this code."""
    assert result.code == code, result.err
    errors, hints = result.messages("error: "), result.messages("hint: ")
    assert (len(errors), len(hints)) == (1, 1), result.err
    assert result.err.splitlines()[-2:] == [f"error: {errors[0]}", f"hint: {hints[0]}"]
    assert result.seconds < 20
    return errors[0], hints[0]
