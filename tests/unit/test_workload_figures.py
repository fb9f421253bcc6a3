"""The figures of file and sort workloads follow Hadoop's formulas, and are correct for merged segments."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from statistics import fmean, pstdev
from typing import Any

import pytest

from event_support import parse_events, ready, summary
from loadstone.engine.events import Files, Reached, Ready, Result, Sorted, Summary, Validation
from loadstone.experiment.kind import EndedLaunch, EngineLaunch
from loadstone.fleet.merge import Merger
from loadstone.results.trial_result import values_by_metric
from loadstone.results.value import Value
from loadstone.workloads import dfsio, sort

MB, S = 1 << 20, 1_000_000_000
NONE = Reached(0, 0, 0)


def result(**more: object) -> Result:
    """A trial with this summary."""
    first, last = parse_events(ready(), summary([]))
    assert isinstance(first, Ready)
    assert isinstance(last, Summary)
    return Result(first, (), replace(last, **more))  # type: ignore[arg-type]


def files(sizes_mb: list[int], spans_s: list[tuple[float, float]], **more: object) -> Files:
    """An engine's summary of files written between these instants."""
    times = [end - start for start, end in spans_s]
    rates = [size / time for size, time in zip(sizes_mb, times, strict=True)]
    last = round(max(end for _, end in spans_s) * S)
    byte_count = sum(sizes_mb) * MB
    reached = Reached(len(sizes_mb), byte_count, round(sum(times) * S), last)
    work = Files(
        len(sizes_mb),
        0,
        0,
        0,
        byte_count,
        0,
        round(sum(times) * S),
        sum(rates),
        sum(rate * rate for rate in rates),
        reached,
        NONE,
        NONE,
        reached,
        rate_min=min(rates),
        rate_max=max(rates),
        first_start_unix_ns=round(min(start for start, _ in spans_s) * S),
        first_done_unix_ns=round(min(end for _, end in spans_s) * S),
        last_done_unix_ns=last,
    )
    return replace(work, **more)  # type: ignore[arg-type]


def file_figures(work: Files, operation: str = "write") -> dict[str, Value]:
    phase = EngineLaunch(operation, "measure", lambda *_: {})
    return values_by_metric(*dfsio.figures(phase, [EndedLaunch(operation, {"work": {}}, result(files=work))]))


SIZES, SPANS = [100, 100, 50], [(1.0, 3.0), (1.0, 5.0), (3.0, 4.0)]


def test_hadoop_figures_use_its_formulas_and_cluster_time() -> None:
    figures = file_figures(files(SIZES, SPANS))
    rates = [50.0, 25.0, 50.0]
    assert figures["throughput"].value == pytest.approx(250 * MB / 4)
    # TestDFSIO.analyzeResult: size * 1000.0 / (time * MEGA), rate / 1000 / tasks, sqrt(|sqrate / 1000 / tasks - med²|)
    assert figures["dfsio.task_throughput"].value == pytest.approx(250 * MB / 7)
    assert figures["dfsio.average_io_rate"].value == pytest.approx(fmean(rates) * MB)
    assert figures["dfsio.io_rate_stddev"].value == pytest.approx(pstdev(rates) * MB)
    assert (figures["dfsio.io_rate_min"].value, figures["dfsio.io_rate_max"].value) == (25 * MB, 50 * MB)
    assert (figures["dfsio.first_done"].value, figures["dfsio.last_done"].value) == (2 * S, 4 * S)
    assert figures["stored"].value == 250 * MB
    assert "returned" not in figures
    assert "returned" in file_figures(files(SIZES, SPANS), "read")


def test_write_guarantees_have_separate_figures() -> None:
    durable = Reached(3, 250 * MB, 9 * S, 6 * S)
    figures = file_figures(files(SIZES, SPANS, durable=durable))
    assert figures["dfsio.durable.throughput"].value == pytest.approx(250 * MB / 5)
    assert figures["dfsio.durable.mean"].value == 3 * S
    assert figures["dfsio.closed.throughput"].value > figures["dfsio.durable.throughput"].value
    assert "dfsio.flushed.throughput" not in figures


def test_without_a_completed_file_there_is_no_throughput() -> None:
    lost = files([1], [(1.0, 2.0)], done=0, failed=1, unfinished=2, bytes=0, lost_bytes=7)
    figures = file_figures(lost)
    assert figures["dfsio.files_failed"].value == 3
    # The throughput is 0, although the engine counts buffers.
    assert (figures["throughput"].value, figures["throughput"].unit) == (0.0, "B/s")
    assert not [metric for metric in figures if "task_throughput" in metric or "rate" in metric]


@pytest.mark.parametrize(
    ("foreign", "unverified", "failed", "wrong"), [(1, 1, 0, 1), (3, 3, 0, None), (3, 4, 1, None), (3, 3, 1, None)]
)
def test_files_without_marks_are_wrong_among_marked_files(
    foreign: int, unverified: int, failed: int, wrong: int | None
) -> None:
    # In the last case one of Hadoop's files is missing.
    figures = file_figures(files(SIZES, SPANS, foreign=foreign, unverified=unverified, failed=failed), "read")
    assert (figures["wrong"].value if "wrong" in figures else None) == wrong


def merge_sections(*sections: dict[str, Any]) -> Summary:
    """The summary of segments with these sections."""
    with Merger([str(number) for number in range(len(sections))]) as merger:
        for segment, section in enumerate(sections):
            merger.hear(segment, json.dumps(ready()))
            merger.hear(segment, json.dumps(summary([], **section)))
        return merger.result().summary


def test_segments_of_files_add_up_to_the_whole() -> None:
    whole = file_figures(files(SIZES, SPANS))
    merged = merge_sections(
        {"files": asdict(files(SIZES[:1], SPANS[:1]))}, {"files": asdict(files(SIZES[1:], SPANS[1:]))}
    ).files
    assert merged is not None
    together = file_figures(merged)
    assert together.keys() == whole.keys()
    for metric, value in whole.items():
        assert together[metric].value == pytest.approx(value.value), metric
        assert together[metric].n == value.n


STAGES = [
    Sorted("prepare", 0, 0, 0, 0.25),
    Sorted("sort", 1_000, 100_000, 100_000, 1.0),
    Sorted("merge", 1_000, 100_000, 100_000, 0.75),
    Sorted("commit", 0, 0, 0, 0.0, checksum="1f4"),
]


def end_launches(stages: list[Sorted]) -> list[EndedLaunch]:
    return [EndedLaunch(f"sort.{stage.stage}", {}, result(sort=stage)) for stage in stages]


def test_sort_time_is_the_sum_of_its_stages() -> None:
    phase = EngineLaunch("sort", "measure", lambda *_: {})
    figures = values_by_metric(*sort.figures(phase, end_launches(STAGES)))
    assert figures["runtime"].value == 2 * S
    assert figures["throughput"].value == 1_000 * 100 / 2
    assert (figures["returned"].value, figures["stored"].value) == (200_000, 200_000)
    assert sort.facts(end_launches(STAGES)) == {
        "networked": "no",
        "rows": 1_000,
        "row_bytes": 100,
        "checksum": "1f4",
    }
    assert sort.failure(end_launches(STAGES)) is None


def test_a_sort_with_wrong_rows_fails() -> None:
    wrong = Validation(1_000, 2, 0, 3, ("part-r-00000: row 7 (offset 700): less than the row before",))
    note = sort.failure(end_launches([Sorted("validate", 1_000, 100_000, 0, 1.0, validation=wrong)]))
    assert note is not None
    assert note.message.startswith("3 of 1,000 rows are wrong: part-r-00000: row 7 (offset 700)")


def test_stages_of_several_engines_are_one_stage() -> None:
    parts = [{"sort": asdict(Sorted("sort", 10, 1_000, 900, seconds, checksum="a"))} for seconds in (1.0, 3.0)]
    whole = merge_sections(*parts).sort
    # The checksum is the sum of the CRC32 of all rows.
    assert whole == Sorted("sort", 20, 2_000, 1_800, 3.0, "14")
    parts.append({"sort": asdict(Sorted("sort", 10, 1_000, 900, 1.0))})
    assert (whole := merge_sections(*parts).sort)
    assert whole.checksum is None
