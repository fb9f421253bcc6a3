"""With fake trials, a run stops for the right reason, even if variants have no figure."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from experiment_support import load_text
from lab_support import SMALL
from loadstone.experiment.plan.plan import PlannedTrial, plan_experiment
from loadstone.results.folder import Folder
from loadstone.runner.progress import PlainLines
from loadstone.runner.run import ExperimentRun
from loadstone.runner.trial import Conductor
from results_support import trial

THREE = SMALL.replace("second: {store: lmdb}", "second: {store: lmdb}, third: {store: lmdb}").replace(
    "%s/workloads", "WORKLOADS"
)


@dataclass
class MadeUp(ExperimentRun):
    """A run whose trials take no time. In some systems, the trials after a certain repeat have no result."""

    # The last successful repeat, by system.
    last: dict[str, int] | None = None

    def trial(self, _: Conductor, planned: PlannedTrial) -> None:
        """Records a fake result."""
        came = planned.repeat <= (self.last or {}).get(str(planned.variant.config["system"]), planned.repeat)
        result = trial(
            planned.trial, planned.variant.config, 1000.0 + planned.repeat, planned.repeat, order=planned.order
        )
        if came:
            self.folder.append_trial(result)
            self.done[result.trial] = result


def run(directory: Path, last: dict[str, int], *settings: str) -> MadeUp:
    """A new run of three variants."""
    loaded = load_text(directory, THREE, *settings)
    folder = Folder.create_folder(directory / "run", "made", loaded.experiment.question_for_judge(), interleaved=True)
    text = PlainLines(Console(file=io.StringIO()))
    return MadeUp(loaded.experiment, plan_experiment(loaded.experiment), folder, text, 0.1, last=last)


def add_repeats(run: MadeUp, systems: Collection[str], repeats: int) -> None:
    """Adds repeats of systems to a run, with throughputs that differ by less than one percent."""
    for repeat in range(1, repeats + 1):
        for system in systems:
            result = trial(f"{system}-{repeat}", {"system": system}, 1000.0 + repeat, repeat)
            run.done[result.trial] = result


ALL = ("first", "second", "third")


@pytest.mark.parametrize(
    ("systems", "settings", "reason"),
    [
        (ALL, ["repeats=3"], "all repeats are done"),
        (ALL[:2], ["repeats=3"], "all repeats are done, but 1 of 3 variants has no figure"),
        (ALL[:1], ["repeats=3"], "all repeats are done, but 2 of 3 variants have no figure"),
        (
            ALL[:2],
            ["repeats={at_least: 6, at_most: 9, until: 5%}"],
            "every interval is as narrow as `repeats.until` requires, but 1 of 3 variants has no figure",
        ),
        (
            ALL[:2],
            ["repeats={at_least: 6, at_most: 6, until: 0.001%}"],
            "the repeats have reached `repeats.at_most`, but 1 of 3 variants has no figure",
        ),
    ],
)
def test_variants_without_a_figure_are_counted(
    tmp_path: Path, systems: Collection[str], settings: list[str], reason: str
) -> None:
    process = run(tmp_path, {}, *settings)
    add_repeats(process, systems, process.experiment.repeats.at_least)
    assert process.enough() == reason


@pytest.mark.parametrize(
    ("until", "reason"),
    [
        # The interval of throughput is 0.3 % wide, the interval of the p99 60 %.
        ("2%", "every interval is as narrow as `repeats.until` requires"),
        ("{throughput: 2%, read.p99: 70%}", "every interval is as narrow as `repeats.until` requires"),
        ("{throughput: 2%, read.p99: 10%}", None),
        ("{throughput: 0.1%, read.p99: 70%}", None),
        ("{throughput: 2%, scan.p99: 1%}", "every interval is as narrow as `repeats.until` requires"),
    ],
)
def test_all_figures_that_until_names_decide(tmp_path: Path, until: str, reason: str | None) -> None:
    process = run(tmp_path, {}, f"repeats={{at_least: 6, at_most: 9, until: {until}}}")
    add_repeats(process, ALL, 6)
    for name, value in process.done.items():
        figures = dict(value.values)
        figures["read.p99"] = replace(figures["read.p99"], value=1e6 * (1 + value.repeat / 10))
        process.done[name] = replace(value, values=figures)
    assert process.enough() == reason


def test_a_variant_with_too_few_repeats_continues(tmp_path: Path) -> None:
    process = run(tmp_path, {}, "repeats=3")
    assert process.enough() is None
    add_repeats(process, ALL[:2], 2)
    assert process.enough() is None


@pytest.mark.usefixtures("engine_variable")
@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({}, "all repeats are done"),
        ({"second": 0}, "all repeats are done, but 1 of 3 variants has no figure"),
        # No variant has enough repeats, and the plan has no more.
        (
            {"first": 1, "second": 0, "third": 0},
            "the repeats have reached `repeats.at_most`, but 2 of 3 variants have no figure",
        ),
    ],
)
def test_run_ends_with_its_count_of_unmeasured_variants(tmp_path: Path, last: dict[str, int], reason: str) -> None:
    assert run(tmp_path, last, "repeats=2").go() == reason
