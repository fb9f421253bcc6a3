"""The report's charts as specifications, and their figures."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import altair as alt
import pytest

import report_support
from judge_support import SOUND, set_figures, sound
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report import html_parts, sweep
from loadstone.report import time_series as thinning
from loadstone.report.charts import device, figure, intervals, percentiles, scaling, theme, time_series
from loadstone.report.charts.figure import Figure
from loadstone.report.markup import countable
from loadstone.report.percentile_curve import nines
from loadstone.report.sections import sections
from loadstone.report.view import View, shorten, spread
from loadstone.results.result_set import Question, ResultSet, variant_key
from loadstone.results.trial_result import Scalar, Series


def figures(judgement: Judgement) -> dict[str, Figure]:
    """All figures of a report."""
    return {figure.name: figure for section in sections(View(judgement)) for figure in section.figures}


def rows(expected: Figure, panel: int) -> list[dict[str, Any]]:
    """All rows of a panel."""
    return [row for data in expected.panels[panel].spec["datasets"].values() for row in data]


@pytest.mark.parametrize("name", ["usual", "scaling"])
def test_every_chart_is_valid_vega_lite(name: str) -> None:
    for result in figures(report_support.ALL[name]()).values():
        # One panel suffices: the panels of a figure differ only in their rows.
        spec = {**result.panels[0].spec, "config": theme.file_config()}
        alt.LayerChart.from_dict(countable(spec)).to_dict(validate=True)


def test_system_has_one_colour_and_mark_everywhere() -> None:
    by_name = figures(report_support.usual())
    assert set(by_name) == {
        "throughput",
        "headline",
        "percentiles",
        "throughput-over-time",
        "latency-over-time",
        "device",
    }
    scales = [scale for figure in by_name.values() for scale in colours([dict(panel.spec) for panel in figure.panels])]
    assert len(scales) > 40
    # The baseline is rocksdb. Reports with another baseline have the same colours.
    assert {tuple(scale["domain"]) for scale in scales} == {("fjall", "lmdb", "rocksdb")}
    assert by_name["percentiles"].legend == (("rocksdb", 2), ("fjall", 0), ("lmdb", 1))


def colours(spec: object) -> list[dict[str, Any]]:
    """Every colour scale of a specification."""
    if isinstance(spec, dict):
        own = [spec["color"]["scale"]] if isinstance(spec.get("color"), dict) else []
        return [*own, *(colour for value in spec.values() for colour in colours(value))]
    return [colour for value in spec for colour in colours(value)] if isinstance(spec, list) else []


def test_page_and_image_charts_share_the_palette() -> None:
    from loadstone.report.html import read

    for number, colour in enumerate(theme.PALETTE, start=1):
        # Each colour is set in light mode and in print.
        assert read("style.css").count(f"--series-{number}: {colour};") == 2


def test_throughput_shows_median_interval_and_repeats() -> None:
    judgement = report_support.usual()
    result = intervals.throughput(View(judgement))
    assert [panel.title for panel in result.panels] == ["workload a", "workload c"]
    cell = judgement.cells[variant_key({"system": "lmdb", "workload": "a"}), "throughput"]
    (mark,) = [row for row in rows(result, 0) if row["name"] == "lmdb" and "median" in row]
    assert (mark["value"], mark["low"], mark["high"]) == (cell.estimate.value, cell.estimate.low, cell.estimate.high)
    dots = [row for row in rows(result, 0) if row["name"] == "lmdb" and "repeat" in row]
    assert sorted(dot["value"] for dot in dots) == sorted(value for _, value in cell.samples)


def test_a_withheld_percentile_is_not_drawn_but_named() -> None:
    result = percentiles.curves(View(report_support.usual()))
    draws = {
        (row["name"], row["percentile"])
        for number, panel in enumerate(result.panels)
        if panel.title == "update · workload a"
        for row in rows(result, number)
    }
    assert ("fjall", "99.95 %") in draws
    assert ("fjall", "99.99 %") not in draws
    assert ("lmdb", "99.99 %") in draws
    assert result.caption.endswith("Withheld because of too few samples: fjall update p99.99.")


def test_each_further_nine_has_the_same_room() -> None:
    assert [round(nines(name), 6) for name in ("p90", "p99", "p99.9", "p99.99")] == [1, 2, 3, 4]


def test_a_lone_percentile_is_no_curve() -> None:
    assert not percentiles.curves(View(report_support.import_pair()))


def test_a_system_in_memory_has_no_device() -> None:
    result = device.bars(View(report_support.usual()))
    text = {row["name"]: row["figure"] for row in rows(result, 0)}
    assert text["fjall"] == "no device"
    assert text["lmdb"].endswith(" B/op")
    assert [panel.title for panel in result.panels][-1] == "write amplification · workload a"


def test_knee_is_drawn_where_claimed() -> None:
    judgement = report_support.scaling()
    chart = scaling.curves(View(judgement))
    for panel in range(len(chart.panels)):
        (knee,) = [row for row in rows(chart, panel) if "knee" in row]
        assert (knee["name"], knee["low"], knee["high"], knee["knee"]) == (
            "cassandra",
            16,
            32,
            "cassandra: knee 16 to 32",
        )
    assert scaling.sentences(View(judgement)) == [
        "cassandra: throughput is highest at 32 clients, 56,100 op/s; 95 % of its plateau (the adjusted level at 32"
        " clients, 55,600 op/s) is reached between 16 and 32 clients; throughput falls below that level again between"
        " 32 and 64 clients, to 48,100 op/s at 64 clients",
        "scylla: throughput still rises at 64 clients (195,000 op/s)",
        "An adjusted mean or level is a geometric mean of medians, without the common shift of each block",
    ]


def test_law_is_drawn_only_where_it_fits() -> None:
    judgement = report_support.scaling()
    assert {row["name"] for row in law_rows(View(judgement))} == {"cassandra", "scylla"}
    without = [replace(curve, law=None) for curve in judgement.curves]
    assert law_rows(View(replace(judgement, curves=without))) == []


def law_rows(view: View) -> list[dict[str, Any]]:
    """The points of the fitted curves."""
    return [row for row in rows(scaling.curves(view), 0) if "figure" not in row and "knee" not in row]


def test_sweep_of_one_system_has_one_series() -> None:
    judgement = report_support.scaling()
    results = replace(judgement.results, question=replace(judgement.results.question, by="clients", baseline=1))
    view = View(replace(judgement, results=results))
    chart = scaling.curves(view)
    assert chart.legend == ()
    assert [panel.title for panel in chart.panels[::3]] == [
        "throughput, op/s · system cassandra",
        "throughput, op/s · system scylla",
    ]
    assert [row["knee"] for row in rows(chart, 0) if "knee" in row] == ["knee 16 to 32"]
    assert scaling.sentences(view)[1].startswith("system scylla: throughput still rises at 64 clients")
    first = View(replace(judgement, results=replace(results, trials=results.trials[:42]), curves=judgement.curves[:1]))
    assert scaling.sentences(first)[0].startswith(
        "throughput is highest at 32 clients, 56,100 op/s; 95 % of its plateau (the adjusted level at 32"
        " clients, 55,600 op/s)"
    )


def test_percentiles_of_imports_are_not_called_merged() -> None:
    judgement = report_support.scaling()
    facts = {"tool": "csv", "percentiles_of": "500 processes"}
    imported = replace(judgement.results, trials=[replace(trial, facts=facts) for trial in judgement.results.trials])
    lead = sweep.describe_table(View(replace(judgement, results=imported)))
    assert (lead, "merged" in sweep.describe_table(View(judgement))) == ("Medians of the repeats.", True)


def list_panels(metric: str, factor: float, listed: tuple[str, ...]) -> list[str]:
    """The titles of the panels if trials also have a p99 with this name, `factor` times the p99 of reads; `listed`:
    the metrics that the question lists."""
    results = report_support.scaling().results
    trials = []
    for trial in results.trials:
        read = trial.values["read.p99"]
        added = replace(read, metric=metric, value=factor * read.value)
        trials.append(replace(trial, values={**trial.values, metric: added}))
    question = replace(results.question, metrics=listed)
    judgement = judge_results(replace(results, trials=trials, question=question))
    throughput, *latencies = [panel.title for panel in scaling.curves(View(judgement)).panels]
    assert throughput == "throughput, op/s"
    return latencies


def test_operation_types_decide_the_panels_of_latencies() -> None:
    assert list_panels("all.p99", 1.5, ()) == ["p99", "read p50"]
    assert list_panels("update.p99", 1.5, ()) == ["read p99", "update p99", "read p50"]
    assert list_panels("all.p99", 1.5, ("read.p99",)) == ["read p99", "p99", "read p50"]
    # With a single operation type, the percentile of all operations would repeat the panel of this type.
    assert list_panels("all.p99", 1.0, ("read.p99",)) == ["read p99", "read p50"]


def test_every_load_is_a_joined_point() -> None:
    results = report_support.scaling().results
    loads = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    trials = [
        replace(trial, trial=f"{load}-{trial.repeat}", config={"clients": load}, clients=load)
        for load in loads
        for trial in results.trials[:6]
    ]
    question = Question(by="clients", metrics=("throughput", "read.p99"))
    judgement = judge_results(replace(results, trials=trials, question=question))
    view = View(judgement)
    chart = scaling.curves(view)
    assert [panel.title for panel in chart.panels] == ["throughput, op/s", "read p99", "read p50"]
    for number, panel in enumerate(chart.panels):
        assert [row["load"] for row in rows(chart, number) if "figure" in row] == list(loads)
        assert sum(layer["mark"].get("strokeJoin") == "round" for layer in panel.spec["layer"]) == 1
    assert "variants are drawn" not in chart.caption
    # Bars by variant would omit most of the loads.
    assert not {"throughput", "headline"} & {section.name for section in sections(view)}


def test_panels_share_the_axis_of_the_load() -> None:
    layers = [layer for panel in scaling.curves(View(report_support.scaling())).panels for layer in panel.spec["layer"]]
    axes = [layer["encoding"]["x"] for layer in layers if layer["mark"].get("strokeJoin") == "round"]
    assert len(axes) > 2
    assert all(axis == axes[0] for axis in axes)


@pytest.mark.parametrize("loads", [[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64], [100, 200, 300, 310, 320, 400], [1, 2]])
def test_labels_of_loads_keep_their_distance(loads: list[float]) -> None:
    ends, wide = [loads[0] / 1.12, loads[-1] * 1.12], loads[-1] > 10 * loads[0]
    labels = scaling.axis_labels(loads, ends, wide=wide)
    places = [scaling.axis_place(load, ends, wide=wide) for load in labels]
    assert labels[-1] == loads[-1]
    assert set(labels) <= set(loads)
    assert all(later - earlier >= scaling.LABEL_GAP for earlier, later in pairwise(places))


def test_charts_limit_their_panels_and_lines() -> None:
    by_name = figures(report_support.large(400))
    # With many metrics, the headline figure has more panels than other figures, but not more panels for one metric.
    panels = {name: len(figure.panels) for name, figure in by_name.items()}
    assert 12 < panels.pop("headline") <= intervals.HEADLINES_MAX
    assert set(panels.values()) == {12}
    lines = [row for number in range(12) for row in rows(by_name["throughput-over-time"], number) if "trial" in row]
    assert len(lines) == 60
    assert "12 of 40 panels are drawn" in by_name["throughput-over-time"].caption
    assert "5 of 10 repeats are drawn." in by_name["throughput-over-time"].caption


def test_systems_beyond_the_colours_are_omitted_with_note() -> None:
    usual = report_support.single_variant()
    trials = [
        replace(trial, trial=f"{system}-{trial.repeat}", config={"system": f"system-{system}"})
        for system in range(11)
        for trial in usual.results.trials
    ]
    result = intervals.throughput(View(report_support.judge_results(replace(usual.results, trials=trials))))
    assert len({row["name"] for row in rows(result, 0)}) == 8
    assert result.caption.endswith("8 of 11 variants are drawn: the tables and values.jsonl have all of them.")


def test_pictures_carry_their_own_colours_and_legend() -> None:
    result = percentiles.curves(View(report_support.usual()))
    spec = json.dumps(countable(figure.combine_panels(result, theme.file_config())))
    assert "var(--" not in spec
    assert len(json.loads(spec)["vconcat"][0]["concat"]) == 3
    assert result.legend == (("rocksdb", 2), ("fjall", 0), ("lmdb", 1))


SERIES = Series((0, 1, 2, 3, 4), (1, 1, 1, 1, 0.1), (10, 30, 20, 40, 5), (1, None, 3, 5, 9), (7, None, 2, 9, 99))


def test_thinned_throughput_is_a_mean_without_partial_end() -> None:
    assert thinning.thin_series(SERIES, "throughput", 1) == [(0, 10), (1, 30), (2, 20), (3, 40)]
    assert thinning.thin_series(SERIES, "throughput", 2) == [(0, 20), (2, 30)]


def test_percentiles_are_never_averaged_over_time() -> None:
    assert thinning.thin_series(SERIES, "p50", 2) == [(0, 1), (2, 4)]
    assert thinning.thin_series(SERIES, "p99", 2) == [(0, 7), (2, 9)]


def test_strong_line_is_the_median_of_enough_lines() -> None:
    lines = [((0, 1), (1, 5)), ((0, 2), (1, 9)), ((0, 9), (2, 1))]
    assert thinning.middle(lines) == [(0, 2), (1, 7)]


def test_long_time_series_is_thinned_for_a_phone() -> None:
    hour = report_support.make_series(1000, 1000, 1, seconds=3600)
    seconds = thinning.step([hour])
    assert seconds == 30
    assert len(thinning.thin_series(hour, "throughput", seconds)) == 120


def test_noticeable_collections_of_garbage_are_marked() -> None:
    first = replace(SERIES, gc_ns=(0, 15_000_000, 20_000_000, 400_000_000, 0))
    second = replace(SERIES, gc_ns=(0, 0, 90_000_000, 300_000_000, 0))
    rows = time_series.pause_rows([("a", 1, first), ("b", 2, second), ("c", 3, SERIES)])
    assert [(row["start"], row["end"], row["share"], row["paused"]) for row in rows] == [
        (2, 3, 0.09, "90.0 ms in repeat 2"),
        (3, 4, 0.4, "400 ms in repeat 1"),
    ]


def test_panels_of_one_context_share_their_axes() -> None:
    view = View(report_support.usual())
    result = time_series.throughput(view, time_series.select_series(view))
    tops = [panel.spec["layer"][1]["encoding"]["y"]["scale"]["domain"] for panel in result.panels]
    assert tops[0] == tops[1] == tops[2]
    assert tops[3] == tops[4] == tops[5]
    assert tops[0] != tops[3]


def test_short_logarithmic_axis_has_labels() -> None:
    assert figure.ticks([90, 210]) == [100, 200]
    assert figure.ticks([9.0, 1.1e6]) == [10, 100, 1000, 10_000, 100_000, 1_000_000]
    assert len(figure.ticks(figure.decade_domain([300.0, 310.0]))) >= 1


def test_long_names_are_shortened_and_stay_apart() -> None:
    view = View(report_support.hostile())
    assert len(set(view.short.values())) == 4
    assert max(map(len, view.short.values())) <= 26
    assert shorten("a very long name of a system-17", 16) == "a very lon…em-17"


def test_selection_of_many_includes_both_ends() -> None:
    keys = [(("n", number),) for number in range(100)]
    result = spread(keys, 12)
    assert len(set(result)) == 12
    assert (result[0], result[-1]) == (keys[0], keys[-1])


def search_clients(unjudged: float = 0) -> View:
    """A search over 1 to 4 clients for a p99 below 10 ms, which 1 and 2 meet; `unjudged` clients have no throughput."""
    latencies = {1: 5e6, 2: 8e6, 4: 20e6, 3: 12e6}
    trials = [
        replace(
            set_figures(all__p99=latency, throughput=0 if load == unjudged else SOUND["throughput"])(
                sound(repeat=repeat)
            ),
            trial=f"{load}-{repeat}",
            config={"clients": load},
            clients=10,
        )
        for load, latency in latencies.items()
        for repeat in range(1, 4)
    ]
    find: dict[str, Scalar | None] = {"such_that": "p99 < 10ms", "over": "clients", "from": 1, "to": 4}
    question = Question(at_least=3, at_most=3, find=find)
    return View(judge_results(ResultSet("searched", trials, question)))


def test_search_draws_objective_and_answer() -> None:
    chart = scaling.curves(search_clients())
    assert [panel.title for panel in chart.panels[:2]] == ["p99", "throughput, op/s"]
    points = [row for row in rows(chart, 0) if "figure" in row]
    assert [(row["load"], row["holds"]) for row in points] == [(1, True), (2, True), (3, False), (4, False)]
    assert [row["text"] for row in rows(chart, 0) if "text" in row] == ["objective < 10.0 ms"]
    (answer,) = [row["load"] for row in rows(chart, 1) if set(row) == {"name", "load"}]
    assert answer == 2


def test_unjudged_loads_have_no_points() -> None:
    chart = scaling.curves(search_clients(unjudged=4))
    for panel in (0, 1):
        assert [row["load"] for row in rows(chart, panel) if "figure" in row] == [1, 2, 3]
        assert {row["load"] for row in rows(chart, panel) if row.get("state") == "could not be judged"} == {4}


def test_signs_of_a_search_are_explained_above() -> None:
    assert [sign for sign, _ in scaling.curves(search_clients()).signs] == ["│", "○"]
    unjudged = scaling.curves(search_clients(unjudged=4))
    assert "<b>?</b> not judged" in html_parts.legend(unjudged)
    assert not scaling.curves(View(report_support.scaling())).signs


def test_searched_latency_is_charted_without_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    view = search_clients()
    monkeypatch.setattr(view, "cell", lambda key, metric: None)
    points = [row for row in rows(scaling.curves(view), 0) if "figure" in row]
    assert [row["figure"] for row in points] == ["5.00 ms", "8.00 ms", "12.0 ms", "20.0 ms"]


def test_search_charts_loads_next_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    view = search_clients()
    monkeypatch.setattr(time_series, "PANELS_MAX", 2)
    assert [dict(key)["clients"] for key in time_series.choose_variants(view, list(view.variants))] == [2, 3]


def test_confounded_loads_are_charted_by_variant() -> None:
    trials = [
        replace(trial, config={"system": f"s{trial.config['clients']}", "clients": trial.config["clients"]})
        for trial in report_support.scaling().results.trials[:18]
    ]
    results = ResultSet("confounded", trials, Question(by="clients", metrics=("throughput",)))
    names = {section.name for section in sections(View(judge_results(results)))}
    assert "scaling" not in names
    assert "throughput" in names


def test_load_of_zero_has_a_linear_axis() -> None:
    trials = [
        replace(
            set_figures(throughput=100.0 * load)(sound(repeat=repeat)), trial=f"{load}-{repeat}", config={"rate": load}
        )
        for load in (0, 100, 2000)
        for repeat in range(1, 4)
    ]
    chart = scaling.curves(View(judge_results(ResultSet("rates", trials, Question(by="rate")))))
    domains = [
        layer["encoding"]["x"]["scale"]["domain"] for layer in chart.panels[0].spec["layer"] if "y" in layer["encoding"]
    ]
    assert domains[0] == [0, 2120]
