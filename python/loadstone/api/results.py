"""Results as Arrow tables: the class `Run`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loadstone.api.frames import convert_to_pandas, convert_to_polars, format_setting, require_table
from loadstone.api.judgement import Judgement
from loadstone.api.latencies import Latencies
from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.results import export
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from loadstone.statistics.percentile import Population

if TYPE_CHECKING:
    import altair as alt
    import pandas
    import polars
    import pyarrow as pa

__all__ = ["Run", "Scalar"]

RunTable = Literal["trials", "figures", "intervals", "histograms", "facts", "hosts", "samples"]
PHASE = "run"


class Run:
    """The trials of one experiment, of imported files, or of several results that are compared."""

    def __init__(self, results: ResultSet) -> None:
        """Wraps a result set; `open`, `load` and `run` return this class."""
        # The input for the lab's commands; not part of the stable interface.
        self.results = results

    def __repr__(self) -> str:
        """The name, the number of trials and the question."""
        question = f": {self.question}" if self.question else ""
        return f"<loadstone.Run {self.name}, {units.count_noun(len(self.results.trials), 'trial')}{question}>"

    @property
    def name(self) -> str:
        """The name of these results in tables."""
        return self.results.name

    @property
    def question(self) -> str:
        """The question of the experiment; empty for imported files."""
        return self.results.question.text

    @property
    def path(self) -> Path | None:
        """The folder or file from which the results were read; None if there were several."""
        return self.results.path

    @property
    def dimensions(self) -> dict[str, list[Scalar]]:
        """Each dimension (`system`, `clients`) with its values."""
        return dict(self.results.dimensions)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The parts of the results that had to be omitted, such as damaged lines."""
        return self.results.warnings

    @cached_property
    def trials(self) -> pa.Table:
        """A row for each trial: dimensions, `trial`, `repeat`, `order`, `attempt`, `clients`, `end` and `reason`.

        If a trial had several attempts, the last uninterrupted one counts. `failures` is the number of earlier attempts
        that failed, and `interruptions` is the number of interrupted attempts.
        """
        return export.trials_table(self.results)

    @cached_property
    def figures(self) -> pa.Table:
        """A row for each figure of each trial: dimensions, `trial`, `metric`, `value`, `unit`, `n`, `bound`.

        `bound` is null for an exact figure and `at_least` for a lower bound. It is `failed` if a percentile's rank
        belongs to a failed operation, and `unanswered` if the rank belongs to an operation that never completed, in a
        stage without failures; a `value` with either bound must not be ranked. `loadstone export` writes this table.
        """
        return export.figures_table(self.results)

    @cached_property
    def intervals(self) -> pa.Table:
        """A row for each interval of each measured window: throughput in op/s, latencies in ns, counts."""
        return export.intervals_table(self.results)

    @cached_property
    def facts(self) -> pa.Table:
        """A row for each fact of each trial (`version`, `durability`, `file_system`); values are text."""
        return export.facts_table(self.results)

    @cached_property
    def hosts(self) -> pa.Table:
        """A row for each fact of each host: `run`, `host`, `fact` (`cpu.model`), `value` as text."""
        return export.hosts_table(self.results)

    @cached_property
    def samples(self) -> pa.Table:
        """A row for each sample of a host, about one a second; values are in ticks, B, ms, µs or ns.

        Memory and numbers of threads are current values; most other values are counters since the host, a device or a
        process started.
        The columns are the paths in observed.jsonl, such as `processors.cpu.user` and `memory.available`.
        """
        return export.host_samples(self.results)

    @cached_property
    def histograms(self) -> pa.Table:
        """A row for each trial, phase and kind of operation: `name`, `n`, `failed`, `censored`, `histogram`.

        `name` is a metric's name without its statistic (`read`, `read.service`). `n` counts successful operations, and
        `histogram` contains their latencies, ns, in HdrHistogram's V2 format in base64. Damaged logs are omitted with a
        warning.
        """
        import pyarrow as pa

        from loadstone.engine.histogram import encode_histogram

        rows = [
            (trial, phase, name, kind.well.count, kind.failed, kind.censored.count, encode_histogram(kind.well))
            for trial, phase, operations in self._logs(self._report)
            for name, kind in operations.items()
        ]
        names = ("trial", "phase", "name", "n", "failed", "censored", "histogram")
        kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.string())
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        return pa.table(columns, names=list(names))

    def latencies(self, operation: str = "all", *, filter: str = "", phase: str = PHASE) -> Latencies:  # noqa: A002
        """The latencies of one operation (`read`, `all`, `read.service`) in all trials, merged exactly.

        `filter` selects trials (`"system:lmdb clients:4"`); `phase` is `run`, or `load` for the load phase. Raises
        LoadstoneError if a trial has no histogram, if a log is damaged, or if no trial has the operation.
        """
        selected = self.filter(filter)
        total, lacking, is_known = Population(), [], False
        logs = {trial: operations for trial, at, operations in selected._logs(refuse) if at == phase}
        for trial in selected.results.trials:
            operations = logs.get(trial.trial)
            if operations is None:
                lacking.append(trial.trial)
            elif operation in operations:
                is_known = True
                total.add_population(operations[operation])
        if lacking:
            raise LoadstoneError(
                f"{len(lacking)} of {units.count_noun(len(selected.results.trials), 'trial')} "
                f"{'has' if len(lacking) == 1 else 'have'} no histograms for the phase {phase}, "
                f"for example {lacking[0]}",
                "exclude them with `filter`; imported reports have only percentiles, in `figures`",
            )
        if not is_known:
            known = sorted({name for operations in logs.values() for name in operations})
            raise LoadstoneError(
                f'there is no operation "{operation}" in {self.name}', f"the operations are {', '.join(known)}"
            )
        return Latencies(total)

    def _logs(self, report: Callable[[LoadstoneError], None]) -> Iterator[tuple[str, str, dict[str, Population]]]:
        """Yields the trial, the phase and the populations by name for each histogram log; `report` receives errors."""
        from loadstone.importers.hlog import read_populations

        for trial in self.results.trials:
            directory = self.results.files(trial.trial)
            logs = {path.stem: path for path in sorted(directory.glob("*.hlog"))} if directory is not None else {}
            if (log := self.results.log(trial.trial)) is not None:
                logs = {PHASE: log}
            for phase, path in logs.items():
                try:
                    yield trial.trial, phase, read_populations(path)
                except LoadstoneError as error:
                    report(error)

    def _report(self, error: LoadstoneError) -> None:
        warnings.warn(f"omitted: {error.args[0]}", stacklevel=4)

    def filter(self, expression: str) -> Run:
        """The trials that pass a filter such as `"system:lmdb AND -clients:(1 OR 2)"`.

        Raises LoadstoneError if the filter is invalid.
        """
        from loadstone.results.projection import filter_results

        return Run(filter_results(self.results, expression))

    @cached_property
    def judgement(self) -> Judgement:
        """The judge's answer to the recorded question.

        Raises LoadstoneError if the question sets an unknown threshold.
        """
        return self.compare()

    def compare(
        self,
        *sides: Run | str | PathLike[str],
        by: str | None = None,
        baseline: Scalar | None = None,
        metrics: str | Iterable[str] = (),
        filter: str = "",  # noqa: A002
        set: Mapping[str, Any] | None = None,  # noqa: A002
        rank_invalid: bool = False,
    ) -> Judgement:
        """Judges the results, as `loadstone show` does; with other `sides`, this run is their baseline.

        `by` and `baseline` name the compared dimension and its baseline, `metrics` the metrics (the first one decides),
        and `filter` the trials; `set` changes the question (`{"compare.matters": "2%"}`). The answer states how the
        comparison differs from the recorded question. Raises LoadstoneError for unknown names.
        """
        from loadstone.api import compare as join
        from loadstone.commands.show_results import regroup_results
        from loadstone.judge.judge import judge_results
        from loadstone.results.projection import Projection

        results = join(self, *sides).results if sides else self.results
        named = {"compare.by": by, "compare.baseline": baseline}
        changes = {**{key: value for key, value in named.items() if value is not None}, **(set or {})}
        settings = [format_setting(key, value) for key, value in changes.items()]
        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        projected = regroup_results(results, settings, Projection(filter=filter, metrics=names))
        return Judgement(judge_results(projected.results, rank_invalid=rank_invalid))

    @property
    def charts(self) -> dict[str, alt.TopLevelMixin]:
        """The charts, keyed by their names in the report; see `Judgement.charts`."""
        return self.judgement.charts

    def table(self, name: RunTable) -> pa.Table:
        """The table with this name. Raises LoadstoneError for any other name."""
        return getattr(self, require_table(name, RunTable))

    def to_pandas(self, table: RunTable = "figures") -> pandas.DataFrame:
        """A table as a pandas data frame. Raises LoadstoneError if pandas is not installed."""
        return convert_to_pandas(self.table(table))

    def to_polars(self, table: RunTable = "figures") -> polars.DataFrame:
        """A table as a Polars data frame. Raises LoadstoneError if Polars is not installed."""
        return convert_to_polars(self.table(table))


def refuse(error: LoadstoneError) -> None:
    """Raises the error."""
    raise error
