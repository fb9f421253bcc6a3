"""Crafted engine events of version 2: histograms, outcomes, intervals and a summary."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from loadstone.engine.events import Event, parse_event
from loadstone.engine.histogram import COOKIE, COOKIE_DEFLATED, HEADER
from loadstone.importers.run import build_histogram

SECOND = 10**9


def encode_histogram(values: Iterable[int]) -> str:
    """A histogram of values in ns, in HdrHistogram's V2 encoding and base64."""
    counts = build_histogram((value, 1) for value in values).counts
    payload = b"".join(zigzag(counts.get(index, 0)) for index in range(max(counts, default=-1) + 1))
    bare = HEADER.pack(COOKIE, len(payload), 0, 3, 1, 1 << 42, 1.0) + payload
    deflated = zlib.compress(bare)
    return base64.b64encode(struct.pack(">ii", COOKIE_DEFLATED, len(deflated)) + deflated).decode()


def zigzag(number: int) -> bytes:
    """A non-negative number in ZigZag LEB128."""
    rest, result = number << 1, bytearray()
    while rest >= 0x80:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)


def outcome(
    operation: str, status: str, service: Iterable[int], response: Iterable[int] | None = None, **more: Any
) -> dict[str, Any]:
    """Operations with these latencies, ns. Operations that were never sent have no service time."""
    services = list(service)
    responses = None if response is None else list(response)
    entries = {"operation": operation, "status": status, "count": len(services if responses is None else responses)}
    entries["service"] = encode_histogram(services)
    if responses is not None:
        entries["response"] = encode_histogram(responses)
    return {**entries, **more}


def ready(**changes: Any) -> dict[str, Any]:
    """The event that reports that the store is open."""
    return {
        "event": "ready",
        "events": 2,
        "engine": "0.2.0",
        "pid": 4711,
        "store": "null",
        "durability": "none",
        "how": "nothing is kept",
        "facts": {},
        "clients": 4,
        "driver_ns": 60.0,
        "connect_seconds": 0.01,
        **changes,
    }


def interval(k: int, outcomes: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """The k-th second, in which every operation that was due succeeded."""
    ended = sum(outcome_of["count"] for outcome_of in outcomes)
    return {
        "event": "interval",
        "k": k,
        "start_ns": k * SECOND,
        "length_ns": SECOND,
        "unix_ns": (1_800_000_000 + k + 1) * SECOND,
        "completed": ended,
        "ended": ended,
        "good": ended,
        "late": 0,
        "failed": 0,
        "not_yet": 0,
        "in_flight": 0,
        "late_generator": 0,
        "late_client": 0,
        "cpu_ns": [SECOND // 2, SECOND // 4],
        "memory_bytes": 1_000_000 * (k + 1),
        "outcomes": outcomes,
        "earlier": [],
        **changes,
    }


def earlier(k: int, outcomes: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Operations that were due in the k-th second and succeeded after that second's event."""
    good = sum(outcome_of["count"] for outcome_of in outcomes)
    counts = {"completed": 0, "ended": 0, "good": good, "late": 0, "failed": 0, "not_yet": 0}
    return {"k": k, **counts, "outcomes": outcomes, **changes}


def executor(name: str, clients: int, busy: float, lag: Iterable[int], held_ns: int = 0) -> dict[str, Any]:
    """An executor's figures for ten seconds."""
    wall = 10 * SECOND
    return {
        "name": name,
        "clients": clients,
        "cpu_ns": round(busy * wall),
        "wall_ns": wall,
        "busy": busy,
        "lag": encode_histogram(lag),
        "held_ns": held_ns,
    }


def summary(outcomes: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Ten seconds in which every operation succeeded, with `changes`."""
    ended = sum(outcome_of["count"] for outcome_of in outcomes if outcome_of["status"] != "CENSORED")
    return {
        "event": "summary",
        "end": "done",
        "profile": "release",
        "start_unix_ns": 1_800_000_000 * SECOND,
        "measured_ns": 10 * SECOND,
        "completed": ended,
        "operations": ended,
        "succeeded": ended,
        "not_yet": 0,
        "retried": 0,
        "rows": ended,
        "bytes": 0,
        "warmup_operations": 0,
        "in_flight": 0,
        "unsent": 0,
        "unclosed": 0,
        "late_generator": 0,
        "late_client": 0,
        "cpu_ns": [5 * SECOND, SECOND],
        "memory_bytes_max": 2_000_000,
        "device_bytes": [0, 0],
        "collections": [],
        "executors": [executor("executor-0", 4, 0.4, [60_000] * 99 + [3_000_000]), executor("conductor", 0, 0.95, [9])],
        "clock": {"source": "tsc", "drift_ppm": 0.4, "offset_ns_max": 90, "jumps": 0, "reversals": 0},
        "borders": {
            "warmup_ns": SECOND,
            "window_ns": 10 * SECOND,
            "cutoff_ns": 11 * SECOND,
            "interval_ns": SECOND,
        },
        "saturated_values": 0,
        "outcomes": outcomes,
        "words": {},
        **changes,
    }


def parse_events(*documents: dict[str, Any]) -> Iterator[Event]:
    """Parses documents as the lab does."""
    return (parse_event(json.dumps(document)) for document in documents)
