"""Segments: the equal parts of a trial, one for each engine."""

from __future__ import annotations

from loadstone.engine.trial import Spec


def split_spec(spec: Spec, engines: int) -> list[Spec]:
    """The specs of segments 0/n to (n - 1)/n. Each spec has the clients, rate and operations of the whole trial."""
    synchronised = {"wait_for_start": True} if engines > 1 else {}
    return [{**spec, **synchronised, **name_ledger(spec, k), "segment": {"k": k, "n": engines}} for k in range(engines)]


def name_ledger(spec: Spec, segment: int) -> Spec:
    """The spec's ledger for one segment: each engine records its writes in a separate file, `<file>.<segment>`."""
    return {"ledger": {"file": f"{spec['ledger']['file']}.{segment}"}} if spec.get("ledger") else {}
