"""`loadstone run FILE.yaml`: runs an experiment, judges it, and writes the report."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from loadstone.commands.parser import Parser, UsageError, guarded
from loadstone.errors import LoadstoneError
from loadstone.systems import provide

if TYPE_CHECKING:
    from rich.console import Console

    from loadstone.experiment.file import Loaded
    from loadstone.experiment.plan.plan import Plan
    from loadstone.judge.judgement import Judgement
    from loadstone.results.folder import Folder

# In the environment the same as --share-host, for scripts and tests.
SHARED = "LOADSTONE_SHARE_HOST"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@guarded
def main(arguments: list[str]) -> int:
    """Runs an experiment; exit status 1 if a trial failed, 130 after Ctrl-C."""
    parser = Parser(
        "run",
        "Run an experiment: every variant, several times, in random order; then judge it and write the report.",
        "Ctrl-C keeps what was done; --resume goes on.",
    )
    parser.add_argument("file", metavar="FILE.yaml", type=Path, help="the experiment")
    parser.add_argument("--scale", metavar="NAME", help="one of the file's scales: small, full")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="change a key of the file")
    parser.add_argument("--resume", action="store_true", help="continue the latest run of this experiment")
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="with --resume: try again what was set aside after 3 failed attempts",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan and how long it takes; run nothing")
    parser.add_argument("--share-host", action="store_true", help="run beside another run on this host")
    parser.add_argument("--no-report", action="store_true", help="write no report at the end")
    parser.results_option()
    options = parser.parse_args(arguments)
    if options.retry_failed and not options.resume:
        raise UsageError("--retry-failed needs --resume", "a new run has no failed attempts")

    from loadstone import workloads
    from loadstone.experiment.file import load

    workloads.register()
    loaded = load(options.file, options.scale, options.set)
    return carry_out(loaded, options.file.stem, options)


def carry_out(loaded: Loaded, name: str, options: Namespace) -> int:
    """Runs an experiment from its plan to its report, by this name; returns the exit status."""
    from rich.console import Console

    from loadstone.experiment.plan.plan import plan

    planned = plan(loaded.experiment)
    if options.dry_run:
        from loadstone.experiment.plan.description import describe

        print(describe(planned, loaded.warnings))
        return 0
    provide.for_stores(variant.store for variant in planned.variants)
    talk = Console(stderr=True, emoji=False, markup=False, highlight=False)
    for warning in loaded.warnings:
        talk.print(str(warning), soft_wrap=True)
    with alone(name, options) as note:
        folder = resumed(loaded, planned, name, options.results) if options.resume else None
        if folder is None:
            from loadstone.runner.run import preflight

            preflight(planned)
            folder = created(loaded, planned, name, options.results)
        note(folder.path)
        talk.print(f"{folder.path}", style="bold")
        for each in ENDING:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, leave)
        failed = conduct(loaded, planned, folder, talk, options.retry_failed)
    shown = getattr(options, "shown", None)
    return int(finish(folder, talk, report=not options.no_report, shown=shown) or failed)


def alone(name: str, options: Namespace) -> AbstractContextManager[Callable[[Path], None]]:
    """Keeps other runs off this host while this one measures; what it gives is told the folder of the results."""
    from loadstone.runner.host_lock import host_locked

    if options.share_host or os.environ.get(SHARED):
        return nullcontext(lambda _: None)
    return host_locked(options.results / name)


def leave(number: int, _: FrameType | None) -> NoReturn:
    """Unwinds. What is left to do is to tidy up, which takes seconds and is not to be interrupted again."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def created(loaded: Loaded, planned: Plan, name: str, root: Path) -> Folder:
    """A new result folder for a run that begins now."""
    from loadstone.observe.environment import environment, shareable
    from loadstone.results.folder import Folder, new_path

    return Folder.create(
        new_path(root, name),
        name,
        loaded.experiment.question_for_judge(),
        # What comes next in a search is not drawn: repeats of two loads are not blocks.
        interleaved=loaded.experiment.find is None,
        experiment=loaded.resolved,
        environment=environment(),
        seed=loaded.experiment.seed,
        command=shlex.join(shareable(["loadstone", *sys.argv[1:]])),
        workloads=digests(planned),
    )


def resumed(loaded: Loaded, planned: Plan, name: str, root: Path) -> Folder:
    """The folder of the latest run. Raises LoadstoneError when there is none, or it asked something else."""
    from loadstone.experiment.reading.resolved import changed_keys
    from loadstone.results.folder import latest

    folder = latest(root, name)
    if folder is None:
        raise LoadstoneError(
            f"there is no run of {name} below {root} to continue", "leave out --resume to start the first"
        )
    changed = changed_keys((folder.path / "experiment.yaml").read_text(), loaded.resolved)
    files = folder.header.get("workloads") or {}
    changed += [path for path, digest in digests(planned).items() if files.get(path, digest) != digest]
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        raise LoadstoneError(
            f"{', '.join(changed)} {verb} changed since {folder.path} was started",
            "give the same files, --scale and --set as then, or leave out --resume to start anew",
        )
    return folder


def digests(planned: Plan) -> dict[str, str]:
    """The SHA-256 of each workload file by its path: what a file says is part of what is asked."""
    import hashlib

    from loadstone.experiment.kind import kind_of

    files = dict.fromkeys(file for variant in planned.variants for file in kind_of(variant).files(variant.work))
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def conduct(loaded: Loaded, planned: Plan, folder: Folder, talk: Console, retry_failed: bool) -> bool:
    """Runs what is missing; returns whether any trial failed. What is done is kept, however this ends."""
    from loadstone.experiment.plan.forecast import estimate, rule_of
    from loadstone.runner.progress import display
    from loadstone.runner.run import Run
    from loadstone.runner.saturation import Find

    with folder.locked():
        for said in folder.repair():
            talk.print(said)
        rule = rule_of(planned)
        each = rule.probes_most * rule.at_most if rule else loaded.experiment.repeats.at_least
        trials = len(planned.variants) * each
        try:
            with display(talk) as shown:
                kind = Run if loaded.experiment.find is None else Find
                seconds = estimate(planned)[1] / max(trials, 1)
                run = kind(loaded.experiment, planned, folder, shown, seconds, retry_failed)
                reason = run.go()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit | LoadstoneError):
                hint = "continue with `loadstone run --resume` and the same arguments"
                talk.print(f"what was measured is kept; {hint}", soft_wrap=True)
            raise
    talk.print(reason)
    if loaded.experiment.find is not None:
        # A load that a system cannot bear is an answer; that there is none is judged where the answer is.
        return False
    return any(trial.end != "done" for trial in folder.load().trials)


def finish(
    folder: Folder, talk: Console, *, report: bool, shown: Callable[[Console, Judgement], None] | None = None
) -> bool:
    """Judges the folder, prints tables and writes the report; returns whether something was left undone.

    `shown` prints tables of its own.
    """
    from loadstone.judge.judge import judge
    from loadstone.report.terminal import tables
    from loadstone.results.projection import Projection, project

    results = folder.load()
    if not results.trials:
        talk.print("no trial came to an end")
        return True
    judgement = judge(results)
    if shown is not None:
        shown(tables.terminal(), judgement)
    else:
        tables.show(tables.terminal(), judgement, project(results, Projection()))
    if report:
        from loadstone.report.write import write

        for path in write(judgement, folder.path):
            if path.suffix == ".html":
                talk.print(f"report: {path}", style="bold", soft_wrap=True)
    return any(each.outcome is None or each.outcome.kind == "nothing" for each in judgement.searches)
