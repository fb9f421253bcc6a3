"""The message why a run stops, with fake trials, including variants without a figure."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from experiment_support import loaded
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
    """A run whose trials take no time; those of some systems fail from a repeat on."""

    # By system: the last repeat that succeeds.
    last: dict[str, int] | None = None

    def trial(self, _: Conductor, planned: PlannedTrial) -> None:
        """Records a fake result."""
        came = planned.repeat <= (self.last or {}).get(str(planned.variant.config["system"]), planned.repeat)
        made = trial(
            planned.trial, planned.variant.config, 1000.0 + planned.repeat, planned.repeat, order=planned.order
        )
        if came:
            self.folder.append_trial(made)
            self.done[made.trial] = made


def run(directory: Path, last: dict[str, int], *settings: str) -> MadeUp:
    """A new run of three variants."""
    found = loaded(directory, THREE, *settings)
    folder = Folder.create_folder(directory / "run", "made", found.experiment.question_for_judge(), interleaved=True)
    shown = PlainLines(Console(file=io.StringIO()))
    return MadeUp(found.experiment, plan_experiment(found.experiment), folder, shown, 0.1, last=last)


def measured(run: MadeUp, systems: Collection[str], repeats: int) -> None:
    """Adds so many repeats of these systems to a run, all within a percent."""
    for repeat in range(1, repeats + 1):
        for system in systems:
            made = trial(f"{system}-{repeat}", {"system": system}, 1000.0 + repeat, repeat)
            run.done[made.trial] = made


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
    found = run(tmp_path, {}, *settings)
    measured(found, systems, found.experiment.repeats.at_least)
    assert found.enough() == reason


@pytest.mark.parametrize(
    ("until", "reason"),
    [
        # The interval of throughput is 0.3 % wide, that of the p99 60 %.
        ("2%", "every interval is as narrow as `repeats.until` requires"),
        ("{throughput: 2%, read.p99: 70%}", "every interval is as narrow as `repeats.until` requires"),
        ("{throughput: 2%, read.p99: 10%}", None),
        ("{throughput: 0.1%, read.p99: 70%}", None),
        ("{throughput: 2%, scan.p99: 1%}", "every interval is as narrow as `repeats.until` requires"),
    ],
)
def test_all_figures_that_until_names_decide(tmp_path: Path, until: str, reason: str | None) -> None:
    found = run(tmp_path, {}, f"repeats={{at_least: 6, at_most: 9, until: {until}}}")
    measured(found, ALL, 6)
    for name, each in found.done.items():
        figures = dict(each.values)
        figures["read.p99"] = replace(figures["read.p99"], value=1e6 * (1 + each.repeat / 10))
        found.done[name] = replace(each, values=figures)
    assert found.enough() == reason


def test_a_variant_with_too_few_repeats_continues(tmp_path: Path) -> None:
    found = run(tmp_path, {}, "repeats=3")
    assert found.enough() is None
    measured(found, ALL[:2], 2)
    assert found.enough() is None


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({}, "all repeats are done"),
        ({"second": 0}, "all repeats are done, but 1 of 3 variants has no figure"),
        # None has enough repeats, and the plan has no more.
        (
            {"first": 1, "second": 0, "third": 0},
            "the repeats have reached `repeats.at_most`, but 2 of 3 variants have no figure",
        ),
    ],
)
def test_run_ends_with_its_count_of_unmeasured_variants(tmp_path: Path, last: dict[str, int], reason: str) -> None:
    assert run(tmp_path, last, "repeats=2").go() == reason
