"""Loadstone's Python interface: `import loadstone` provides everything that `__all__` names here.

Figures are in base units: ns, B, op/s, operations; shares are from 0 to 1. All tables are Arrow tables, which pandas,
Polars and DuckDB can read. Failures raise LoadstoneError, whose `hint` states the next step.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from loadstone.api.frames import format_setting
from loadstone.api.judgement import Judgement
from loadstone.api.latencies import Latencies
from loadstone.api.results import Run, Scalar
from loadstone.errors import LoadstoneError
from loadstone.results.result_set import ResultSet
from loadstone.statistics.percentile import Percentile

__all__ = ["Judgement", "Latencies", "LoadstoneError", "Percentile", "Run", "compare", "load", "open", "run"]


def open(path: str | PathLike[str], results: str | PathLike[str] = "results") -> Run:  # noqa: A001
    """Opens results: a result folder, an archive of a folder, the latest run of a named experiment, or a file
    from another tool.

    `results` is the directory in which names are looked up. Damaged lines are omitted and listed in `Run.warnings`.
    Raises LoadstoneError if there are no results, or if they were written by a newer version.
    """
    from loadstone.commands.open_results import open_results

    return Run(open_results(str(path), Path(results)))


def load(
    *files: str | PathLike[str],
    facts: Mapping[str, Scalar] | None = None,
    format: str | None = None,  # noqa: A002
) -> Run:
    """Reads files from other tools (YCSB, cassandra-stress, fio, HDR logs …) without writing anything.

    `facts` states what the files do not contain (`{"clients": 4}`); `format` is a format's name, as for `loadstone
    import --format`. Equal variants in several files count as repeats. Raises LoadstoneError if a file is damaged or
    not recognised.
    """
    from loadstone.importers.read import logs_of, read_all

    if not files:
        raise LoadstoneError("there are no files to load", "name at least one file")
    paths = [Path(file) for file in files]
    imported = read_all(paths, dict(facts or {}), format)
    series = {imported_run.result.trial: imported_run.series for imported_run in imported}
    name = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    trials = [imported_run.result for imported_run in imported]
    return Run(ResultSet(name, trials, series=series.get, log=logs_of(imported).get))


def run(
    file: str | PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    scale: str | None = None,
    results: str | PathLike[str] = "results",
    resume: bool = False,
    share_host: bool = False,
) -> Run:
    """Runs an experiment, as `loadstone run` does, and opens its results; no report is written.

    `set` overrides keys in the file (`{"measure.duration": "5s", "vary.clients": [1, 4]}`). Progress goes to standard
    error. The results include failed trials. Raises LoadstoneError if the experiment is invalid or cannot be run;
    finished trials are kept, and `resume=True` continues the run.
    """

    from loadstone import workloads
    from loadstone.commands.run import run_experiment
    from loadstone.experiment.file import load_experiment
    from loadstone.report.terminal import PlainConsole

    path = Path(file)
    settings = [format_setting(key, value) for key, value in (set or {}).items()]
    command = ["loadstone", "run", str(path), *(["--scale", scale] if scale else [])]
    for setting in settings:
        command += ["--set", setting]
    options = Namespace(
        results=Path(results), resume=resume, share_host=share_host, retry_failed=False, command=command
    )
    workloads.register()
    loaded = load_experiment(path, scale, settings)
    console = PlainConsole(stderr=True)
    folder, _ = run_experiment(loaded, path.stem, options, console)
    return Run(folder.load_results())


def compare(*sides: Run | str | PathLike[str] | Sequence[Run | str | PathLike[str]]) -> Run:
    """Joins several results into one run, with `run` as an additional dimension; the first side is the baseline.

    A side is a run, a path, a name, or a sequence of runs of the same experiment. A claim needs six alternating runs of
    each side. Raises LoadstoneError for fewer than two sides, and under the same conditions as `open`.
    """
    from loadstone.results.union import join_results

    def read_side(side: Any) -> ResultSet | list[ResultSet]:
        if isinstance(side, Run):
            return side.results
        return open(side).results if isinstance(side, str | PathLike) else [open_side(member) for member in side]

    def open_side(member: Run | str | PathLike[str]) -> ResultSet:
        return member.results if isinstance(member, Run) else open(member).results

    if len(sides) < 2 or not all(sides):
        raise LoadstoneError("a comparison needs at least two results", "name a second run, path or name")
    return Run(join_results([read_side(side) for side in sides]))
