"""History: the figures of one question in all of its results, by version and commit, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.format import wording
from loadstone.format.suggestion import nearest_names
from loadstone.judge.checks.sides_differ import render_values
from loadstone.judge.facts import STORAGE, UNKNOWN, name_fact, record_facts
from loadstone.judge.finding import worst_verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Cell, Judgement, VariantKey
from loadstone.results.folder import IMPORTED, Folder, name_time
from loadstone.results.projection import complete_metric, filter_results
from loadstone.results.result_set import ResultSet, natural_key, variant_name
from loadstone.results.trial_result import Scalar, TrialResult

# The width of a chart of intervals on a terminal, in characters.
WIDTH = 32
# The facts that distinguish hosts, in addition to their names.
HOST = ("cpu_model", "cpus", "memory_bytes", "kernel")
# The fact with the commit of the system that an imported trial measured.
COMMIT = "commit"
# The facts that do not distinguish settings: facts of hosts and versions, and facts that follow from figures.
UNSET = frozenset(
    {
        *("version", COMMIT, "system_version", "server_version", "jvm", "server_jvm", "engine", "profile", "hosts"),
        *("host_names", "server_hosts", "data_in", "operations", "bytes_per_read", "mix", "window", *HOST, *STORAGE),
    }
)


@dataclass(frozen=True)
class HistoryPoint:
    """The figure of one variant in one run: the median of its repeats."""

    # The run: the names of the experiment's directory and of the run's folder; the latter states the time of the run.
    run: str
    # The system's version, and the commit of the working directory; `+` marks uncommitted changes.
    version: str
    commit: str
    # The host's letter.
    host: str
    # The settings and the work, as facts.
    facts: Mapping[str, Scalar]
    # The time of the run, in the form of a folder's name.
    time: str
    cell: Cell
    # The verdict on the variant's trials: `valid`, `unchecked`, `suspect` or `invalid`.
    verdict: str
    figure: str
    # Whether the figure is only a lower or an upper bound.
    is_bound: bool


@dataclass(frozen=True)
class FigureHistory:
    """The figures of one metric and variant over several runs."""

    metric: str
    variant: VariantKey
    entries: Sequence[HistoryPoint]

    @property
    def settings(self) -> dict[str, str]:
        """The differing settings of the runs, by letter; empty if all runs have the same settings."""
        every = self._distinct_facts()
        names = dict.fromkeys(name for facts in every for name in facts)
        differing = [name for name in names if len({facts.get(name) for facts in every}) > 1]
        return {
            letter(number): ", ".join(
                f"{name_fact(name)} {render_values(name, [facts.get(name, UNKNOWN)])}" for name in differing
            )
            for number, facts in enumerate(every if differing else ())
        }

    def settings_letter(self, entry: HistoryPoint) -> str:
        """The letter of an entry's settings."""
        return letter(self._distinct_facts().index(entry.facts))

    def _distinct_facts(self) -> list[Mapping[str, Scalar]]:
        distinct: list[Mapping[str, Scalar]] = []
        for entry in self.entries:
            distinct += [] if entry.facts in distinct else [entry.facts]
        return distinct

    @property
    def title(self) -> str:
        """The metric and the variant."""
        return f"{wording.metric_name(self.metric)}, {variant_name(self.variant)}"


@dataclass(frozen=True)
class History:
    """All histories of a question, and the hosts by letter."""

    question: str
    series: Sequence[FigureHistory]
    hosts: Mapping[str, str]
    # A line for each result that was omitted, with the reason.
    problems: Sequence[str]


def select(folders: Iterable[Folder], name: str) -> list[Folder]:
    """The results of a question; `name` is a part of its text, an experiment or a folder. Raises LoadstoneError."""
    every = list(folders)
    named = [
        folder
        for folder in every
        if name in (folder.path.parent.name, folder.name) or Path(name) in (folder.path, folder.path.parent)
    ]
    questions = {folder.question.text for folder in named if folder.question.text}
    if not named:
        needle = " ".join(name.lower().split())
        texts = dict.fromkeys(folder.question.text for folder in every)
        questions = {text for text in texts if text and needle in " ".join(text.lower().split())}
        if len(questions) > 1:
            raise LoadstoneError(f'{len(questions)} questions contain "{name}"', f"for example: {min(questions)}")
    matches = [folder for folder in every if folder in named or folder.question.text in questions]
    if not matches:
        near = nearest_names(name, [folder.path.parent.name for folder in every], 3)
        hint = f"did you mean {', '.join(near)}?" if near else "`loadstone list` shows all results and their questions"
        raise LoadstoneError(f'there are no results for the question "{name}"', hint)
    return matches


def trace(folders: Sequence[Folder], metrics: Sequence[str], expression: str) -> History:
    """The history of some results, ordered by host, version and time. Raises LoadstoneError if it is empty."""
    hosts: dict[str, str] = {}
    entries: dict[tuple[str, VariantKey], list[HistoryPoint]] = {}
    problems: list[str] = []
    question = ""
    for folder in sorted(folders, key=lambda folder: folder.path.name):
        try:
            results = filter_results(folder.load_results(), expression)
            judgement = judge_results(results)
        except LoadstoneError as error:
            problems.append(f"omitted: {error.args[0]}")
            continue
        question = results.question.text or results.name
        for key in results.variants:
            for metric in [complete_metric(name, results.metrics) for name in metrics] or results.headline_metrics:
                if (key, metric) in judgement.cells:
                    entries.setdefault((metric, key), []).append(read_entry(folder, judgement, key, metric, hosts))
    if not entries:
        raise LoadstoneError("none of the results has these figures", "; ".join(problems) or "name another --metric")
    return History(question, list(arrange(entries)), {letter: text for text, letter in hosts.items()}, problems)


def arrange(entries: Mapping[tuple[str, VariantKey], Sequence[HistoryPoint]]) -> Iterator[FigureHistory]:
    """The histories by metric, in order of appearance, then by variant; their entries by host, version and time."""
    metrics = list(dict.fromkeys(metric for metric, _ in entries))
    for metric, key in sorted(entries, key=lambda pair: (metrics.index(pair[0]), natural_key(pair[1]))):
        every = entries[metric, key]
        ordered = sorted(every, key=lambda point: (point.host, natural_key(point.version), point.time, point.run))
        yield FigureHistory(metric, key, ordered)


def read_entry(
    folder: Folder, judgement: Judgement, key: VariantKey, metric: str, hosts: dict[str, str]
) -> HistoryPoint:
    """One figure of a run; a new host is assigned the next letter."""
    results = judgement.results
    trials = results.variants[key]
    versions = dict.fromkeys(str(trial.facts["version"]) for trial in trials if "version" in trial.facts)
    cell = judgement.cells[key, metric]
    findings = [*judgement.variants.get(key, ())]
    for trial in trials:
        findings += judgement.trials.get(trial.trial, ())
    bound = judgement.output_bound(cell)
    return HistoryPoint(
        run=f"{folder.path.parent.name}/{folder.path.name}",
        version=" + ".join(versions) or "unknown",
        commit=read_commit(results, trials),
        host=hosts.setdefault(describe_host(results), letter(len(hosts))),
        facts={
            name: fact
            for name, fact in record_facts(trials[0]).items()
            if name not in UNSET and not name.startswith("server.")
        },
        time=read_time(folder, trials),
        cell=replace(cell, estimate=judgement.output_estimate(cell)),
        verdict=str(worst_verdict(findings)),
        figure=cell.withheld or wording.estimate_text(cell.estimate, cell.unit, bound),
        is_bound=bound is not None,
    )


def read_commit(results: ResultSet, trials: Sequence[TrialResult]) -> str:
    """The commit: the fact of imported trials, or the shortened commit of the experiment's repository, with `+` for
    uncommitted changes."""
    if stated := dict.fromkeys(str(trial.facts[COMMIT]) for trial in trials if COMMIT in trial.facts):
        return " + ".join(stated)
    git = results.environment.get("git")
    commit = str(git.get("commit") or "") if isinstance(git, dict) else ""
    return f"{commit[:9]}{'+' if isinstance(git, dict) and git.get('dirty') else ''}" if commit else "unknown"


def read_time(folder: Folder, trials: Sequence[TrialResult]) -> str:
    """The time of a run: the name of its folder, or the start of imported trials if their logs state it."""
    starts = [trial.start_unix_ns for trial in trials if trial.start_unix_ns is not None]
    is_dated = folder.path.parent.name == IMPORTED and starts
    return name_time(datetime.fromtimestamp(min(starts) / 1e9, UTC)) if is_dated else folder.path.name


def describe_host(results: ResultSet) -> str:
    """A description of the hosts of a run: names, processors, memory, kernel."""
    hosts = results.environment.get("hosts")
    names = [str(host.get("name")) for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    facts = results.trials[0].facts if results.trials else {}
    parts = [", ".join(dict.fromkeys(names)), *(f"{name} {facts[name]}" for name in HOST if name in facts)]
    return "; ".join(part for part in parts if part) or "unknown"


def letter(number: int) -> str:
    """The label of a host or of settings: A, B … Z, A1, B1 …"""
    return f"{chr(ord('A') + number % 26)}{number // 26 or ''}"


def draw_interval(point: HistoryPoint, low: float, high: float, width: int = WIDTH) -> str:
    """A figure `●` (a bound: `○`) and its interval `├─┤` on an axis from `low` to `high`.

    Empty if the figure is withheld or infinite.
    """
    estimate = point.cell.estimate
    if point.cell.withheld or not math.isfinite(estimate.value):
        return ""

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (width - 1)) if high > low else 0

    marks = [" "] * width
    if estimate.low is not None and estimate.high is not None:
        left, right = place(estimate.low), place(estimate.high)
        marks[left : right + 1] = "─" * (right + 1 - left)
        marks[left], marks[right] = "├", "┤"
    marks[place(estimate.value)] = "○" if point.is_bound else "●"
    return "".join(marks).rstrip()


def find_limits(entries: Iterable[HistoryPoint]) -> tuple[float, float]:
    """The ends of an axis with room for all figures and intervals; (0, 0) without figures."""
    numbers: list[float] = []
    for entry in entries:
        estimate = entry.cell.estimate
        if not entry.cell.withheld and math.isfinite(estimate.value):
            numbers += [end for end in (estimate.low, estimate.value, estimate.high) if end is not None]
    return (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
