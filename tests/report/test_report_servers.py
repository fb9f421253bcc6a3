"""The tables of servers, in the report and on a terminal: each variant's resource usage, with its regions."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from judge_support import experiment, facts, sound
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report.sections import sections
from loadstone.report.server_tables import tabulate_servers, tabulate_variants
from loadstone.report.table import Table
from loadstone.report.terminal.tables import servers as on_terminal
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from report_support import page, pull_request

FIGURES = {
    "cpu": (1.5, "processors"),
    "memory_max": (1e9, "B"),
    "read": (2e6, "B"),
    "written": (3e9, "B"),
    "network.received": (4e8, "B"),
    "network.sent": (5e6, "B"),
    "gc.count": (12.0, "collections"),
    "gc.pause": (6e7, "ns"),
}


def add_servers(trial: TrialResult) -> TrialResult:
    """A trial of lmdb as if served by two region servers, with figures that grow from repeat to repeat."""
    if trial.config["system"] != "lmdb":
        return trial
    entries = {}
    for name, factor in (("region-server-1.", 1), ("region-server-2.", 2), ("", 3)):
        for figure, (number, unit) in FIGURES.items():
            metric = f"server.{name}{figure}"
            entries[metric] = Value(metric, number * factor * trial.repeat, unit, 10)
    counted = {"regions": 201, "region-server-1.regions": 100, "region-server-2.regions": 104, "regions.usertable": 201}
    for metric, count in {f"server.{name}": count for name, count in counted.items()}.items():
        entries[metric] = Value(metric, count, "", 1)
    return replace(trial, values={**trial.values, **entries})


def judge_systems() -> Judgement:
    """Two systems, one with servers."""
    return judge_results(experiment(add_servers))


def print_section(judgement: Judgement, width: int) -> str:
    """The section as printed on a terminal of this width."""
    console = Console(width=width, file=io.StringIO(), record=True)
    for renderable in on_terminal(judgement, console):
        console.print(renderable)
    return console.export_text()


def texts(table: Table) -> list[list[str]]:
    """The headings and every row."""
    rows = [[entry.text for entry in row] for group in table.groups for row in group.rows]
    return [[column.title for column in table.columns], *rows]


def test_variant_has_medians_of_all_servers_and_regions() -> None:
    heads, row = texts(tabulate_variants(View(judge_systems())))
    assert heads[:2] == ["variant", "throughput"]
    assert dict(zip(heads[2:], row[2:], strict=True)) == {
        "CPU": "15.8",
        "memory": "10.5 GB",
        "read from storage": "21.0 MB",
        "pages dirtied": "31.5 GB",
        "received": "4.20 GB",
        "sent": "52.5 MB",
        "collections": "126",
        "paused": "630 ms",
        "regions": "201",
    }
    assert row[0] == "system=lmdb"


def test_what_servers_do_periodically_stands_beside_the_window() -> None:
    def periodic(trial: TrialResult) -> TrialResult:
        trial = add_servers(trial)
        if trial.config["system"] != "lmdb":
            return trial
        names = {
            "server.postgres.checkpoint_period_seconds": 30.0,
            "server.before.postgres.checkpoint_period_seconds": 9.0,
        }
        more = {name: Value(name, number, "s", 1) for name, number in names.items()}
        return replace(trial, values={**trial.values, "runtime": Value("runtime", 1e10, "ns", 1), **more})

    heads, row = texts(tabulate_variants(View(judge_results(experiment(periodic)))))
    assert list(zip(heads[-2:], row[-2:], strict=True)) == [
        ("window", "10.0 s"),
        ("postgres checkpoint every", "30.0 s"),
    ]


def test_each_server_has_its_own_row() -> None:
    heads, first, second = texts(tabulate_servers(View(judge_systems())))
    assert heads[0] == "server"
    assert heads[-1] == "regions"
    assert (first[0], first[1], first[-1]) == ("region-server-1", "5.25", "100")
    assert (second[0], second[1], second[-1]) == ("region-server-2", "10.5", "104")


def test_variants_are_named_by_what_varies() -> None:
    def set_clients(trial: TrialResult) -> TrialResult:
        of_its_own = {"batch": 9} if trial.config["system"] == "lmdb" else {}
        return replace(add_servers(trial), config={"mix": "readonly", **trial.config, **of_its_own})

    _, row = texts(tabulate_variants(View(judge_results(experiment(set_clients)))))
    assert row[0] == "batch=9 system=lmdb"
    alone = judge_results(ResultSet("alone", [set_clients(sound("lmdb"))], Question("How fast is it?")))
    _, row = texts(tabulate_variants(View(alone)))
    assert row[0] == "batch=9 mix=readonly system=lmdb"


def test_single_server_has_only_the_variants_table() -> None:
    def keep_single_server(trial: TrialResult) -> TrialResult:
        retained = {name: value for name, value in add_servers(trial).values.items() if "region-server-2" not in name}
        return replace(trial, values=retained)

    assert not tabulate_servers(View(judge_results(experiment(keep_single_server))))


def test_server_section_requires_servers() -> None:
    judgement = judge_systems()
    assert "servers" in [section.name for section in sections(View(judgement))]
    assert "region-server-2" in page(judgement)
    assert "| system=lmdb |" in pull_request(judgement)
    assert "10.5 GB" in print_section(judgement, 200)
    without = judge_results(experiment())
    assert "servers" not in [section.name for section in sections(View(without))]
    assert print_section(without, 200) == ""


@pytest.mark.parametrize("width", [200, 110, 90, 60, 30])
def test_a_terminal_cuts_no_figure_off(width: int) -> None:
    table = tabulate_variants(View(judge_systems()))
    _, row = texts(table)
    output = " ".join(print_section(judge_systems(), width).split())
    for column, text in zip(table.columns, row, strict=True):
        assert text in output
        assert all(word in output for word in column.title.split()) or column.title == "variant"
    assert "…" not in output


def test_the_judge_sees_nodes_and_replication() -> None:
    def set_single_node(trial: TrialResult) -> TrialResult:
        return facts(data_nodes=3, replication=3)(trial) if trial.config["system"] == "lmdb" else trial

    def both(trial: TrialResult) -> TrialResult:
        return set_single_node(facts(data_nodes=1, replication=1)(trial))

    result = " ".join(finding.message for finding in judge_results(experiment(both)).all_findings)
    assert "number of data nodes (1 against 3)" in result
    assert "replication (1 against 3)" in result
