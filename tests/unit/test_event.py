"""Events of version 2: what is read, what is refused, and what each means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from event_support import earlier, interval, outcome, parsed, ready, summary
from loadstone.engine.events import Interval, Ready, Summary, merge_service_times, parse_event
from loadstone.engine.histogram import decode_histogram


def test_interval_with_additions_to_earlier_ones_is_read() -> None:
    late = [outcome("UPDATE", "OK", [7_000], [9_000], response_lower="HIST")]
    written = interval(3, [outcome("READ", "OK", [1_000, 2_000])], due=100, earlier=[earlier(1, late, failed=2)])
    (found,) = parsed(written)
    assert isinstance(found, Interval)
    assert (found.k, found.due, found.completed, found.good, found.cpu_ns) == (3, 100, 2, 2, (500_000_000, 250_000_000))
    assert decode_histogram(found.outcomes[0].service).count == 2
    (added,) = found.earlier
    assert (added.k, added.good, added.failed) == (1, 1, 2)
    assert (added.outcomes[0].operation, added.outcomes[0].response_lower) == ("UPDATE", "HIST")


def test_closed_loop_interval_has_nothing_due() -> None:
    (found,) = parsed(interval(0, []))
    assert isinstance(found, Interval)
    assert (found.due, found.earlier) == (None, ())


def test_a_summary_is_read_with_its_parts() -> None:
    outcomes = [outcome("READ", "OK", [1_000] * 8, service_ns_sum=8_000), outcome("READ", "CENSORED", [50_000])]
    (found,) = parsed(summary(outcomes, due=10, in_flight=1, unsent=1, operations=8, completed=6))
    assert isinstance(found, Summary)
    assert (found.due, found.never_ended, found.throughput) == (10, 2, 0.6)
    assert [(each.name, each.clients, each.busy) for each in found.executors] == [
        ("executor-0", 4, 0.4),
        ("conductor", 0, 0.95),
    ]
    assert (found.clock.source, found.clock.jumps, found.borders.cutoff_ns) == ("tsc", 0, 11_000_000_000)
    assert (found.outcomes[0].service_ns_sum, found.outcomes[1].is_failure) == (8_000, False)


def test_unknown_keys_are_ignored_at_every_depth() -> None:
    strange = {"of_version_3": {"a": 1}}
    written = interval(
        0, [{**outcome("READ", "OK", [1]), **strange}], earlier=[{**earlier(0, []), **strange}], **strange
    )
    assert [*parsed(written)] == [*parsed(interval(0, [outcome("READ", "OK", [1])], earlier=[earlier(0, [])]))]
    event = summary([], **strange)
    event["clock"].update(strange)
    assert [*parsed(event)] == [*parsed(summary([]))]


def test_another_version_is_refused_by_its_first_line() -> None:
    for version in (1, 3):
        with pytest.raises(ValueError, match=f"its version is {version}, expected 2"):
            parse_event(json.dumps(ready(events=version)))
        with pytest.raises(ValueError, match=f"its version is {version}"):
            parse_event(json.dumps({"event": "ready", "events": version}))
    (found,) = parsed(ready())
    assert isinstance(found, Ready)


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
    (found,) = parsed(interval(0, [outcome("READ", status, [1]) for status in statuses]))
    assert isinstance(found, Interval)
    assert [each.is_failure for each in found.outcomes] == [False] * 4 + [True] * 3
    # The latency that a display shows is of what ended well.
    assert merge_service_times(found.outcomes).count == 2
