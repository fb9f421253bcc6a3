"""Crafted engine events give the expected figures, time series and histogram logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from event_support import SECOND, earlier, encode_histogram, executor, interval, outcome, parse_events, ready, summary
from loadstone.engine import __main__ as event_types
from loadstone.engine.events import Interval, Note, Ready, Result, Summary
from loadstone.engine.trial import EngineError
from loadstone.experiment.kind import EndedLaunch, EngineLaunch
from loadstone.fleet.interface import Observations
from loadstone.importers.read import read_file as imported
from loadstone.results import hlog
from loadstone.results.fault import FaultRecord
from loadstone.results.trial_result import Series
from loadstone.results.value import PERCENTILES, Value
from loadstone.runner import engine_figures
from loadstone.runner.phase import Finished
from loadstone.runner.progress import PhaseProgress, PlainLines
from loadstone.runner.series import SeriesBuilder
from loadstone.runner.trial import Conductor, lift_notes
from loadstone.statistics.percentile import Bound, Population
from loadstone.workloads import ycsb
from results_support import intervals, merge_by_tag

US, MS = 1_000, 1_000_000
LOAD = EngineLaunch("load", "prepare", lambda *_: {})


def test_event_types_match_the_schema() -> None:
    assert event_types.TYPES.read_text() == event_types.render_module(json.loads(event_types.SCHEMA.read_text())), (
        "run make docs"
    )


def result(outcomes: list[dict[str, Any]], **changes: Any) -> Result:
    """A trial with one summary."""
    first, last = parse_events(ready(), summary(outcomes, **changes))
    assert isinstance(first, Ready)
    assert isinstance(last, Summary)
    return Result(first, (), last)


def read_figures(outcomes: list[dict[str, Any]], **changes: Any) -> dict[str, Value]:
    """The figures of a trial."""
    return {value.metric: value for value in engine_figures.summarize_run(result(outcomes, **changes), 0)}


def value_attributes(value: Value) -> tuple[float, Bound | None, int]:
    """A figure with all its attributes."""
    return value.value, value.bound, value.n


def test_throughput_counts_successful_operations_in_the_engines_window() -> None:
    values = read_figures([outcome("READ", "OK", [US] * 100)], completed=90, measured_ns=2 * SECOND)
    assert value_attributes(values["throughput"]) == (45.0, None, 90)
    assert values["runtime"].value == 2 * SECOND
    assert values["operations"].value == 100
    assert "due" not in values


def test_an_empty_window_has_no_throughput() -> None:
    assert "throughput" not in read_figures([], measured_ns=0)


def test_failures_never_lower_a_percentile() -> None:
    well, failed = [US * number for number in range(1, 981)], [1] * 20
    values = read_figures([outcome("READ", "OK", well), outcome("READ", "ERROR", failed)], succeeded=980)
    for name in ("read", "all"):
        # Without the failures the p95 would be the 931st value.
        assert value_attributes(values[f"{name}.p95"]) == (values["read.p95"].value, None, 1_000)
        assert values[f"{name}.p95"].value == pytest.approx(950 * US, rel=1e-3)
        assert values[f"{name}.p99"].bound == values[f"{name}.max"].bound == "failed"
        assert values[f"{name}.p99"].value == pytest.approx(980 * US, rel=1e-3)
    # These figures cover only the successful operations.
    assert (values["read.count"].value, values["read.min"].value) == (980, 1_000)
    assert values["read.mean"].value == pytest.approx(490.5 * US, rel=1e-3)
    assert (values["errors"].value, values["read.mean"].n) == (20, 980)


def test_unended_operations_make_a_percentile_a_bound() -> None:
    outcomes = [
        outcome("READ", "OK", [US] * 980, [2 * US] * 980),
        # Five were sent but not answered. Fifteen were never sent, and therefore have no service time.
        outcome("READ", "CENSORED", [100 * MS] * 5, [500 * MS] * 20),
    ]
    values = read_figures(outcomes, due=1_000, in_flight=5, unsent=15)
    assert value_attributes(values["read.p95"]) == (2_000, None, 1_000)
    value, bound, n = value_attributes(values["read.p99"])
    assert (value == pytest.approx(500 * MS, rel=1e-3), bound, n) == (True, "at_least", 1_000)
    assert values["read.service.p99"].bound is None
    assert value_attributes(values["read.service.p99.5"])[1:] == ("at_least", 985)
    assert (values["due"].value, values["censored"].value, values["errors"].value) == (1_000, 20, 0)
    assert engine_figures.statuses(result(outcomes).summary) == {"READ": {"OK": 980, "CENSORED": 20}}


def test_unanswered_closed_loop_client_is_a_failure() -> None:
    values = read_figures([outcome("READ", "OK", [US] * 98), outcome("READ", "CENSORED", [MS] * 2)], in_flight=2)
    assert (values["errors"].value, values["censored"].value) == (2, 2)
    assert values["read.p99"].bound == "at_least"


def test_read_during_its_records_insert_has_no_latency() -> None:
    values = read_figures([outcome("READ", "OK", [US] * 10), outcome("READ", "NOT_YET", [9 * MS] * 10)], not_yet=10)
    assert value_attributes(values["read.max"]) == (1_000, None, 10)


def test_buffered_writes_count_as_successful() -> None:
    values = read_figures([outcome("INSERT", "OK", [US] * 10), outcome("INSERT", "BATCHED_OK", [2 * US] * 10)])
    assert value_attributes(values["insert.max"]) == (2_000, None, 20)
    assert values["insert.count"].value == 20
    assert values["insert.mean"].value == pytest.approx(1.5 * US, rel=1e-3)


def test_composed_operation_is_counted_by_its_parts() -> None:
    outcomes = [
        outcome("READ", "OK", [US] * 10),
        outcome("UPDATE", "OK", [US] * 10),
        outcome("READ-MODIFY-WRITE", "OK", [2 * US] * 10),
        outcome("READ-MODIFY-WRITE", "CENSORED", [MS]),
        outcome("CLEANUP", "OK", [5 * MS]),
    ]
    values = read_figures(outcomes, in_flight=1)
    assert (values["all.p50"].n, values["all.max"].bound) == (21, "at_least")
    assert values["read-modify-write.max"].n == 11
    assert values["read.max"].bound is None


def test_an_operation_that_always_failed_has_only_percentiles() -> None:
    values = read_figures([outcome("READ", "ERROR", [US] * 10)], succeeded=0, completed=0)
    assert value_attributes(values["read.p50"]) == (0, "failed", 10)
    assert not {"read.mean", "read.count", "read.min"} & values.keys()


def test_means_use_the_engines_exact_sums() -> None:
    outcomes = [
        outcome("READ", "OK", [1_000_000] * 4, [2_000_000] * 4, service_ns_sum=4_001_234, response_ns_sum=8_002_468),
        outcome("READ", "ERROR", [100] * 4, [200] * 4, service_ns_sum=396, response_ns_sum=796),
    ]
    values = read_figures(outcomes, succeeded=4)
    assert (values["read.mean"].value, values["read.service.mean"].value) == (8_002_468 / 4, 4_001_234 / 4)
    # Little's law applies to all operations, including failed ones.
    assert (values["all.mean"].value, values["all.service.mean"].value) == (
        (8_002_468 + 796) / 8,
        (4_001_234 + 396) / 8,
    )


def test_rate_yields_response_lower_bound_and_service_times() -> None:
    outcomes = [outcome("READ", "OK", [US] * 10, [9 * US] * 10, response_lower=encode_histogram([4 * US] * 10))]
    values = read_figures(outcomes, due=10)
    assert [values[f"read{kind}.p50"].value for kind in ("", ".lower", ".service")] == [
        pytest.approx(value * US, rel=1e-3) for value in (9, 4, 1)
    ]
    assert values["all.lower.p99"].n == 10
    # Older engines do not report the lower bound.
    assert not [name for name in read_figures([outcome("READ", "OK", [US], [US])]) if ".lower" in name]
    assert not [name for name in read_figures([outcome("READ", "OK", [US])]) if ".service" in name]


def test_the_busiest_and_the_latest_executor_are_reported() -> None:
    executors = [
        executor("executor-0", 500, 0.3, [60 * US] * 1_000),
        executor("executor-1", 500, 0.97, [60 * US] * 980 + [8 * MS] * 20, held_ns=70 * MS),
        executor("conductor", 0, 1.0, [20 * MS], held_ns=90 * MS),
    ]
    values = read_figures([], executors=executors, clock={"source": "tsc", "drift_ppm": 1, "jumps": 2}, unclosed=3)
    assert values["executor.busy_max"].value == 0.97
    assert values["executor.held_max"].value == 90 * MS
    assert values["executor.lag_p99"].value == values["executor.lag_max"].value == pytest.approx(20 * MS, rel=1e-3)
    assert (values["clock.jumps"].value, values["unclosed"].value) == (2, 3)


def test_thread_per_client_leaves_no_executor_busy() -> None:
    names = read_figures([], executors=[executor("conductor", 0, 0.99, [])])
    assert not [name for name in names if name.startswith("executor.")]


def test_facts_about_the_work_come_from_its_kind() -> None:
    work = {
        "type": "records",
        "records": 1_000,
        "mix": {"read": 0.5, "update": 0.5},
        "field_length": {"distribution": "constant", "bytes": 100},
        "field_count": 10,
        "read_all_fields": True,
        "write_all_fields": False,
        "scan_length": {"distribution": "uniform", "min": 1, "max": 100},
    }
    spec = {"phase": "run", "work": work, "store": {"name": "lmdb"}}
    run = EngineLaunch("run", "measure", lambda _, __: spec)
    outcomes = [outcome("READ", "OK", [1] * 4), outcome("UPDATE", "BATCHED_OK", [1] * 2), outcome("READ", "ERROR", [1])]
    amounts = {value.metric: value.value for value in ycsb.figures(run, [EndedLaunch("run", spec, result(outcomes))])}
    assert amounts == {"returned": 4_000, "stored": 200}
    assert ycsb.facts([EndedLaunch("run", spec, result(outcomes))]) == {
        "records": 1_000,
        "record_bytes": 1_000,
        "mix": "50 % read, 50 % update",
    }
    series = {"phase": "run", "work": {"type": "time_series", "records": 7}}
    assert [*ycsb.figures(run, [EndedLaunch("run", series, result(outcomes))])] == []
    assert ycsb.facts([EndedLaunch("run", series, result(outcomes))]) == {"records": 7}


def test_a_load_with_unclosed_clients_fails_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_load(unclosed: int) -> list[Finished]:
        load_result = result([outcome("INSERT", "OK", [US])], unclosed=unclosed)
        return [Finished("load", {}, load_result, Series((), (), ()), 0)]

    conductor = Conductor.__new__(Conductor)
    conductor.display = PlainLines(Console())
    monkeypatch.setattr(conductor, "_run", lambda *_: run_load(2))
    with pytest.raises(EngineError, match="2 clients of the load did not close: writes that they buffered may be lost"):
        conductor._complete(LOAD, "", Path(), 1, Path())
    monkeypatch.setattr(conductor, "_run", lambda *_: run_load(0))
    (message,) = conductor._complete(LOAD, "", Path(), 1, Path())
    assert message.result.summary.unclosed == 0


def test_load_with_a_lost_host_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    note = Note("lost-segment", "host host1 is lost: silent for 3.1 s", "")
    loads = replace(result([outcome("INSERT", "OK", [US])]), notes=(note,))
    conductor = Conductor.__new__(Conductor)
    conductor.display = PlainLines(Console())
    for facts, is_negative in (({"host_names": "host0, host1"}, True), ({}, False)):
        ended = Finished("load", {}, loads, Series((), (), ()), 0, 2, 1, Observations(facts=facts))
        monkeypatch.setattr(conductor, "_run", lambda *_, ended=ended: [ended])
        with pytest.raises(EngineError, match="1 of 2 load generators exited during the load without") as caught:
            conductor._complete(LOAD, "", Path(), 1, Path())
        assert (caught.value.status < 0) == is_negative


# Intervals.


def second(k: int, reads: list[int], **changes: Any) -> dict[str, Any]:
    """An interval of reads at a rate of three per second."""
    return interval(k, [outcome("READ", "OK", reads, reads)], due=3, **changes)


def stall_documents() -> list[dict[str, Any]]:
    """Three one-second intervals; operations due in the second interval end in the third."""
    late = [outcome("READ", "OK", [MS], [900 * MS]), outcome("READ", "ERROR", [MS] * 2, [800 * MS] * 2)]
    return [
        second(0, [MS, MS]),
        second(1, [], earlier=[earlier(0, [outcome("READ", "OK", [MS], [300 * MS])])], completed=1, ended=1),
        second(2, [MS, MS, MS], earlier=[earlier(1, late, good=1, failed=2)], completed=4, ended=6),
    ]


def read_series(*documents: dict[str, Any]) -> Series:
    """The time series of intervals."""
    collected = SeriesBuilder()
    for event in parse_events(*documents):
        if isinstance(event, Interval):
            collected.take(event)
    return collected.series()


def test_throughput_is_by_end_and_latency_by_due() -> None:
    series = read_series(*stall_documents())
    assert [*series.start_seconds] == [0, 1, 2]
    assert [*series.throughput] == [2, 1, 4]
    assert [*series.ended] == [2, 1, 6]
    assert [*series.due] == [3, 3, 3]
    assert [*series.failed] == [0, 2, 0]
    assert [*series.p99_ns] == pytest.approx([300 * MS, 900 * MS, MS], rel=1e-3)
    assert [*series.p50_ns] == pytest.approx([MS, 900 * MS, MS], rel=1e-3)


def test_an_interval_without_successful_operations_has_no_latency() -> None:
    series = read_series(interval(0, [outcome("READ", "ERROR", [MS])], good=0, failed=1, completed=0))
    assert (series.p50_ns, series.p99_ns, series.failed, series.throughput) == ((None,), (None,), (1,), (0,))
    assert series.due == ()


def test_an_interval_of_length_0_is_dropped() -> None:
    assert read_series(interval(0, [], length_ns=0)).throughput == ()
    assert read_series() == Series((), (), ())


def test_old_and_new_series_survive_a_round_trip() -> None:
    series = read_series(*stall_documents())
    assert Series.from_json(series.to_json()) == series
    old = {name: column for name, column in series.to_json().items() if name not in ("due", "ended")}
    read = Series.from_json(old)
    assert (read.throughput, read.due, read.ended) == (series.throughput, (), ())
    assert read.to_json() == old
    with pytest.raises(ValueError, match="different lengths"):
        Series.from_json({**old, "ended": [1]})


def write_log(path: Path, *documents: dict[str, Any]) -> Path:
    """Writes the histogram log of a phase."""
    with path.open("w") as file:
        writer = hlog.Writer(file)
        for event in parse_events(*documents):
            if isinstance(event, Interval):
                writer.write_interval(event)
            elif isinstance(event, Summary):
                writer.write_censored(event)
    return path


def test_lines_of_one_interval_are_summed(tmp_path: Path) -> None:
    path = write_log(tmp_path / "run.hlog", *stall_documents())
    entries: dict[tuple[str, float], int] = {}
    for tag, start, length, histogram in intervals(path):
        assert length == 1.0
        entries[tag, start] = entries.get((tag, start), 0) + histogram.count
    assert entries == {
        **{("READ", at): count for at, count in ((0.0, 3), (1.0, 1), (2.0, 3))},
        **{("READ-response", at): count for at, count in ((0.0, 3), (1.0, 1), (2.0, 3))},
        ("READ-ERROR", 1.0): 2,
        ("READ-ERROR-response", 1.0): 2,
    }


def test_log_suffices_for_every_percentile(tmp_path: Path) -> None:
    well, failed = [MS] * 60, [2 * MS] * 3
    outcomes = [
        outcome("READ", "OK", well, [3 * value for value in well]),
        outcome("READ", "ERROR", failed, failed),
        outcome("READ", "CENSORED", [40 * MS], [90 * MS] * 4),
    ]
    whole = summary(outcomes, due=67, in_flight=1, unsent=3, succeeded=60)
    path = write_log(tmp_path / "run.hlog", interval(0, outcomes[:2], due=67), whole)
    merged = merge_by_tag(intervals(path))
    live_values = read_figures(outcomes, due=67, in_flight=1, unsent=3, succeeded=60)
    for kind, tag in (("", "-response"), (".service", "")):
        of = Population(merged[f"READ{tag}"], merged[f"READ-ERROR{tag}"].count, merged[f"READ-CENSORED{tag}"])
        for name, percentile in zip(PERCENTILES, of.read_percentiles(list(PERCENTILES.values())), strict=True):
            assert value_attributes(live_values[f"read{kind}.{name}"]) == (
                percentile.value,
                percentile.bound,
                of.count,
            )
    (log,) = imported(path, {})
    log_values = log.result.values
    for name in [*PERCENTILES, "max"]:
        for operation in ("read", "read.service", "all"):
            assert value_attributes(log_values[f"{operation}.{name}"]) == value_attributes(
                live_values[f"{operation}.{name}"]
            ), f"{operation}.{name}"
    assert log.result.statuses == {"READ": {"OK": 60, "ERROR": 3, "CENSORED": 4}}
    assert log.result.value("errors") == 3


def test_a_log_without_intervals_is_empty(tmp_path: Path) -> None:
    path = write_log(tmp_path / "run.hlog", summary([outcome("READ", "CENSORED", [MS])]))
    assert merge_by_tag(intervals(path)) == {}


def test_a_running_phase_shows_its_rate_and_progress() -> None:
    text = PhaseProgress("run", 8, None, 0)
    text.start()
    for event in parse_events(*stall_documents()):
        assert isinstance(event, Interval)
        text.take(event)
    assert (text.done, text.rates) == (9, [2, 1, 4])
    for event in parse_events(summary([outcome("READ", "OK", [MS] * 2_000)], measured_ns=4 * SECOND)):
        assert isinstance(event, Summary)
        text.finish(event)
    assert text.speed == "500 op/s"
    assert text.latency.startswith("p99 1.00 ms")


def test_failed_lift_is_the_last_note() -> None:
    lifted = FaultRecord("kill", ("a",), 1, 2)
    failed = replace(lifted, kind="power", servers=("b",), unverified={"lifted": "the device is busy"})
    (note,) = lift_notes([lifted, failed])
    assert (note.name, note.message) == ("faults", "power cut of b was not lifted: the device is busy")
