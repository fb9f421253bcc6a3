"""Events of version 2: parsing, refusals, and the meaning of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from event_support import earlier, interval, outcome, parse_events, ready, summary
from loadstone.engine.events import Interval, Ready, Summary, merge_service_times, parse_event
from loadstone.engine.histogram import decode_histogram


def test_interval_with_additions_to_earlier_ones_is_read() -> None:
    late = [outcome("UPDATE", "OK", [7_000], [9_000], response_lower="HIST")]
    written = interval(3, [outcome("READ", "OK", [1_000, 2_000])], due=100, earlier=[earlier(1, late, failed=2)])
    (event,) = parse_events(written)
    assert isinstance(event, Interval)
    assert (event.k, event.due, event.completed, event.good, event.cpu_ns) == (3, 100, 2, 2, (500_000_000, 250_000_000))
    assert decode_histogram(event.outcomes[0].service).count == 2
    (added,) = event.earlier
    assert (added.k, added.good, added.failed) == (1, 1, 2)
    assert (added.outcomes[0].operation, added.outcomes[0].response_lower) == ("UPDATE", "HIST")


def test_closed_loop_interval_has_nothing_due() -> None:
    (event,) = parse_events(interval(0, []))
    assert isinstance(event, Interval)
    assert (event.due, event.earlier) == (None, ())


def test_a_summary_is_read_with_its_parts() -> None:
    outcomes = [outcome("READ", "OK", [1_000] * 8, service_ns_sum=8_000), outcome("READ", "CENSORED", [50_000])]
    (summary_event,) = parse_events(summary(outcomes, due=10, in_flight=1, unsent=1, operations=8, completed=6))
    assert isinstance(summary_event, Summary)
    assert (summary_event.due, summary_event.never_ended, summary_event.throughput) == (10, 2, 0.6)
    assert [(executor.name, executor.clients, executor.busy) for executor in summary_event.executors] == [
        ("executor-0", 4, 0.4),
        ("conductor", 0, 0.95),
    ]
    assert (summary_event.clock.source, summary_event.clock.jumps, summary_event.borders.cutoff_ns) == (
        "tsc",
        0,
        11_000_000_000,
    )
    assert (summary_event.outcomes[0].service_ns_sum, summary_event.outcomes[1].is_failure) == (8_000, False)


def test_unknown_keys_are_ignored_at_every_depth() -> None:
    strange = {"of_version_3": {"a": 1}}
    written = interval(
        0, [{**outcome("READ", "OK", [1]), **strange}], earlier=[{**earlier(0, []), **strange}], **strange
    )
    assert [*parse_events(written)] == [
        *parse_events(interval(0, [outcome("READ", "OK", [1])], earlier=[earlier(0, [])]))
    ]
    event = summary([], **strange)
    event["clock"].update(strange)
    assert [*parse_events(event)] == [*parse_events(summary([]))]


def test_another_version_is_refused_by_its_first_line() -> None:
    for version in (1, 3):
        with pytest.raises(ValueError, match=f"its version is {version}, expected 2"):
            parse_event(json.dumps(ready(events=version)))
        with pytest.raises(ValueError, match=f"its version is {version}"):
            parse_event(json.dumps({"event": "ready", "events": version}))
    (event,) = parse_events(ready())
    assert isinstance(event, Ready)


@pytest.mark.parametrize(
    ("event", "lacking"),
    [
        (interval(0, []), "k"),
        (interval(0, []), "completed"),
        (summary([]), "measured_ns"),
        (summary([]), "clock"),
        (summary([]), "unclosed"),
    ],
)
def test_a_field_that_is_missing_is_named(event: dict[str, Any], lacking: str) -> None:
    with pytest.raises(ValueError, match=f"it has no `{lacking}`"):
        parse_event(json.dumps({name: value for name, value in event.items() if name != lacking}))


def test_an_invalid_part_is_refused() -> None:
    for event in (summary([], clock="tsc"), interval(0, [], earlier=[7])):
        with pytest.raises(ValueError, match="is not "):
            parse_event(json.dumps(event))


def test_statuses_are_well_failed_or_neither() -> None:
    statuses = ["OK", "BATCHED_OK", "NOT_YET", "CENSORED", "NOT_FOUND", "ERROR", "UNEXPECTED_STATE"]
    (event,) = parse_events(interval(0, [outcome("READ", status, [1]) for status in statuses]))
    assert isinstance(event, Interval)
    assert [entry.is_failure for entry in event.outcomes] == [False] * 4 + [True] * 3
    # A display shows the latency of successful operations.
    assert merge_service_times(event.outcomes).count == 2
