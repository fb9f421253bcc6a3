"""Logs of many processes that form one run, such as hundreds of cassandra-stress processes at one point of a sweep.

Histograms can be added exactly, but percentiles cannot, so logs without histograms are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.importers import hlog
from loadstone.importers.read import Imported, name_runs, open_source
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar

HINT = "have each process write histograms (cassandra-stress: -log hdrfile=FILE), and import those files"


def merge_logs(paths: Sequence[Path], facts: Mapping[str, Scalar], name: str | None = None) -> list[Imported]:
    """One trial from the histogram logs of several processes.

    Raises LoadstoneError for a log without histograms, a copy of another log, or logs with different units.
    """
    opened = [open_source(path, facts, name) for path in paths]
    for source, chosen, _ in opened:
        if chosen.NAME != hlog.NAME:
            message = "the log has only percentiles, and percentiles of several processes cannot be merged"
            raise LoadstoneError(f"{message} ({source.path.name})", HINT)
    sources = [source for source, _, _ in opened]
    refuse_copies(sources)
    run = hlog.merge_runs(sources)
    run.facts["processes"] = len(paths)
    first, _, written = opened[0]
    return name_runs(first.path, [run], written, facts)


def refuse_copies(sources: Sequence[Source]) -> None:
    """Raises LoadstoneError if two files have the same content, because one process would count twice."""
    known: dict[str, Source] = {}
    for source in sources:
        digest = hashlib.sha256(source.text.encode()).hexdigest()
        if digest in known:
            message = f"{source.path} is a copy of {known[digest].path}"
            raise LoadstoneError(message, "name the log of each process only once")
        known[digest] = source
