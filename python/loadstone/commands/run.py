"""`loadstone run FILE.yaml` runs an experiment, judges it, and writes the report."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from loadstone.commands.parser import CommandParser, UsageError, check_conditions, check_gate, guard_command
from loadstone.errors import LoadstoneError
from loadstone.systems import prerequisites

if TYPE_CHECKING:
    from rich.console import Console

    from loadstone.experiment.file import Loaded
    from loadstone.experiment.plan.plan import Plan
    from loadstone.judge.judgement import Judgement
    from loadstone.results.folder import Folder

# The environment variable with the same effect as --share-host, for scripts and tests.
SHARED = "LOADSTONE_SHARE_HOST"
# The code that the process for the live page runs.
SERVE = "import sys; from loadstone.cli import main; sys.exit(main())"
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@guard_command
def main(arguments: list[str]) -> int:
    """Runs an experiment. The exit status is 1 if a trial or an expectation failed, 3 if an expectation is undecided,
    130 after Ctrl-C."""
    parser = CommandParser(
        "run",
        "Run an experiment: run every variant several times, in random order, judge the results, and write a report.",
        "Ctrl-C keeps finished trials; --resume continues.",
    )
    parser.add_argument("file", metavar="FILE.yaml", type=Path, help="the experiment")
    parser.add_argument("--scale", metavar="NAME", help="apply one of the file's scales, such as small or full")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override a key of the file")
    parser.add_argument("--resume", action="store_true", help="continue the latest run of this experiment")
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="with --resume: retry variants that were excluded after 3 failed attempts",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the plan, its duration, and what would fail; run nothing"
    )
    parser.add_argument("--share-host", action="store_true", help="allow another run on this host at the same time")
    parser.expect_options()
    parser.add_argument(
        "--live", action="store_true", help="show the run in the browser, on this host, while it is measured"
    )
    parser.add_argument(
        "--live-port", metavar="PORT", type=int, default=0, help="the port of the live page (default: any)"
    )
    parser.add_argument("--metrics-port", metavar="PORT", type=int, help="serve OpenMetrics on this port of this host")
    parser.add_argument("--no-report", action="store_true", help="do not write a report at the end")
    parser.results_option()
    options = parser.parse_args(arguments)
    if options.retry_failed and not options.resume:
        raise UsageError("--retry-failed needs --resume", "add --resume: a new run has no failed attempts")

    from loadstone import workloads
    from loadstone.experiment.file import load_experiment

    check_conditions(options.expect)
    workloads.register()
    loaded = load_experiment(options.file, options.scale, options.set)
    check_gate(options.junit, [*loaded.experiment.expect, *options.expect])
    if options.expect:
        expected = json.dumps([*loaded.experiment.expect, *options.expect])
        loaded = load_experiment(options.file, options.scale, [*options.set, f"expect={expected}"])
    return carry_out(loaded, options.file.stem, options)


def carry_out(loaded: Loaded, name: str, options: Namespace) -> int:
    """Runs an experiment, from its plan to its report; returns the exit status."""
    from loadstone.experiment.plan.plan import plan_experiment
    from loadstone.report.terminal import PlainConsole

    require_live_ports(options)
    if options.dry_run:
        from loadstone.experiment.plan.description import describe_plan
        from loadstone.runner.rehearsal import advice, rehearse

        planned = plan_experiment(loaded.experiment)
        notes = [*advice(planned), *busy_host(options)]
        print("\n\n".join([describe_plan(planned, loaded.warnings), *notes]), flush=True)
        rehearse(planned)
        return 0
    console = PlainConsole(stderr=True)
    folder, failed = run_experiment(loaded, name, options, console, END_SIGNALS)
    status = finish_run(folder, console, options)
    return int(failed) or status


def run_experiment(
    loaded: Loaded, name: str, options: Namespace, console: Console, ending: Sequence[signal.Signals] = ()
) -> tuple[Folder, bool]:
    """Runs the missing trials of an experiment; returns the result folder, and whether any trial failed.

    The signals in `ending` end the run gracefully. Raises LoadstoneError.
    """
    from loadstone.experiment.plan.plan import plan_experiment

    planned = plan_experiment(loaded.experiment)
    prerequisites.for_stores(variant.store for variant in planned.variants)
    for warning in loaded.warnings:
        console.print(str(warning), soft_wrap=True)
    with exclusive_host(name, options) as note:
        folder = resume_folder(loaded, planned, name, options.results) if options.resume else None
        if folder is None:
            from loadstone.runner.rehearsal import advice, preflight

            preflight(planned)
            for text in advice(planned):
                console.print(text, soft_wrap=True)
            command = getattr(options, "command", None) or ["loadstone", *sys.argv[1:]]
            folder = create_folder(loaded, planned, name, options.results, command)
        note(folder.path)
        console.print(f"{folder.path}", style="bold")
        for number in ending:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, interrupt_run)
        with serve_live(folder, console, options):
            return folder, run_trials(loaded, planned, folder, console, options.retry_failed)


def require_live_ports(options: Namespace) -> None:
    """Checks the packages and ports for the live page and the metrics before anything runs.

    Raises LoadstoneError if a package is missing or a port is in use.
    """
    if getattr(options, "live", False) or getattr(options, "metrics_port", None) is not None:
        from loadstone.commands.serve import require_packages

        require_packages()
    ports = {
        "the live page": getattr(options, "live", False) and options.live_port,
        "the metrics server": getattr(options, "metrics_port", None),
    }
    for name, port in ports.items():
        # Imported late: a run without these servers does not need the systems.
        if port:
            from loadstone.systems.base.startup import require_port

            require_port(name, "127.0.0.1", port)


@contextmanager
def serve_live(folder: Folder, console: Console, options: Namespace) -> Iterator[None]:
    """Serves the live page and the metrics, if requested, from a separate process as long as the run lasts.

    The server's standard input is a lease: after the lab has exited for any reason, the server exits, too.
    """
    has_page, metrics_port = getattr(options, "live", False), getattr(options, "metrics_port", None)
    if not has_page and metrics_port is None:
        yield
        return
    command = [
        sys.executable,
        "-P",
        "-c",
        SERVE,
        "serve",
        str(options.results),
        "--child",
        "--follow",
        str(folder.path),
    ]
    command += ["--port", str(options.live_port)] if has_page else ["--metrics-only"]
    command += [] if metrics_port is None else ["--metrics-port", str(metrics_port)]
    pipe = subprocess.PIPE
    # The server runs in a separate session, so that Ctrl-C reaches only the lab.
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdin, server.stdout:
        for name in ("live", "metrics")[not has_page : 2 - (metrics_port is None)]:
            if not (address := server.stdout.readline().strip()):
                what = "the live page" if name == "live" else "the metrics server"
                raise LoadstoneError(f"{what} could not be started", "read the error above")
            console.print(f"{name}: {address}", style="bold", soft_wrap=True)
        yield


def exclusive_host(name: str, options: Namespace) -> AbstractContextManager[Callable[[Path], None]]:
    """Holds this host's lock, unless the host is shared; yields a function that records the results folder."""
    from loadstone.runner.host_lock import host_locked

    if options.share_host or os.environ.get(SHARED):
        return nullcontext(lambda _: None)
    return host_locked(options.results / name)


def busy_host(options: Namespace) -> Iterator[str]:
    """Yields a warning if another run is measuring on this host, because this run would be refused now."""
    from loadstone.runner.host_lock import HINT, find_holder

    if not (options.share_host or os.environ.get(SHARED)) and (other := find_holder()):
        yield f"warning: another run is measuring on this host ({other}): this run would be refused now\nhint: {HINT}"


def interrupt_run(number: int, _: FrameType | None) -> NoReturn:
    """Ends the run. Further signals are ignored, because cleaning up takes seconds and must not be interrupted."""
    for ignored in END_SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def create_folder(loaded: Loaded, planned: Plan, name: str, root: Path, command: Sequence[str]) -> Folder:
    """Creates the result folder for a new run; `command` is recorded as the command that started the run."""
    from loadstone.experiment.plan.forecast import trial_seconds
    from loadstone.observe.environment import describe_environment, redact_arguments
    from loadstone.results.folder import Folder, new_path

    forecast = {"trial_seconds": trial_seconds(planned)}
    if loaded.experiment.find is None:
        forecast["trials"] = loaded.experiment.repeats.at_least * len(planned.variants)
    return Folder.create_folder(
        new_path(root, name),
        name,
        loaded.question_for_judge(),
        # The order of loads in a search is not random.
        interleaved=loaded.experiment.find is None,
        experiment=loaded.text_with_defaults,
        environment=describe_environment(arguments=command),
        seed=loaded.experiment.seed,
        command=shlex.join(redact_arguments(command)),
        workloads=file_digests(planned),
        forecast=forecast,
    )


def resume_folder(loaded: Loaded, planned: Plan, name: str, root: Path) -> Folder:
    """The folder of the latest run. Raises LoadstoneError if there is none, or if the experiment has changed."""
    from loadstone.experiment.reading.resolved import list_changed_keys
    from loadstone.results.folder import latest_folder

    folder = latest_folder(root, name)
    if folder is None:
        raise LoadstoneError(f"there is no run of {name} below {root} to continue", "omit --resume to start a new run")
    changed = list_changed_keys((folder.path / "experiment.yaml").read_text(), loaded.text_with_defaults)
    files = folder.header.get("workloads") or {}
    changed += [path for path, digest in file_digests(planned).items() if files.get(path, digest) != digest]
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        raise LoadstoneError(
            f"{', '.join(changed)} {verb} changed since {folder.path} was started",
            "use the same files, --scale and --set as before, or omit --resume to start a new run",
        )
    return folder


def file_digests(planned: Plan) -> dict[str, str]:
    """The SHA-256 of each workload file, keyed by path, to detect changes."""
    import hashlib

    from loadstone.experiment.kind import kind_of

    files = dict.fromkeys(file for variant in planned.variants for file in kind_of(variant).files(variant.work))
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def run_trials(loaded: Loaded, planned: Plan, folder: Folder, console: Console, retry_failed: bool) -> bool:
    """Runs the missing trials; returns whether any trial failed. Finished trials are kept, however the run ends."""
    from loadstone.experiment.plan.forecast import trial_seconds
    from loadstone.runner.progress import display
    from loadstone.runner.run import ExperimentRun
    from loadstone.runner.search import SearchRun

    with folder.hold_lock():
        for message in folder.repair_lines():
            console.print(message)
        try:
            with display(console) as progress:
                kind = ExperimentRun if loaded.experiment.find is None else SearchRun
                run = kind(loaded.experiment, planned, folder, progress, trial_seconds(planned), retry_failed)
                reason = run.go()
        except BaseException as error:
            finished = 0
            with suppress(LoadstoneError, OSError):
                folder.repair_lines()
                finished = sum(trial.end == "done" for trial in folder.load_results().trials)
            if finished and isinstance(error, KeyboardInterrupt | SystemExit | LoadstoneError):
                hint = "continue with `loadstone run --resume` and the same arguments"
                console.print(f"finished trials are kept; {hint}", soft_wrap=True)
            raise
    console.print(reason)
    if loaded.experiment.find is not None:
        # In a search, trials may fail at high loads; `finish_run` decides whether there is an answer.
        return False
    return any(trial.end != "done" for trial in folder.load_results().trials)


def finish_run(folder: Folder, console: Console, options: Namespace) -> int:
    """Judges the results in a folder, prints tables and writes the report; returns the exit status.

    The exit status is 1 if no trial has finished, a search has no answer or an expectation is false, 3 if an
    expectation is undecided.
    `options.print_results` replaces the usual tables.
    """
    from loadstone.judge.judge import judge_results
    from loadstone.report.expectation_files import write_files
    from loadstone.report.expectations import exit_status
    from loadstone.report.terminal import standard_output, tables
    from loadstone.results.projection import Projection, project_results

    results = folder.load_results()
    if not results.trials:
        console.print("no trial has finished")
        return 1
    judgement = judge_results(results)
    print_results: Callable[[Console, Judgement], None] | None = getattr(options, "print_results", None)
    if print_results is not None:
        print_results(standard_output(), judgement)
    else:
        tables.show(standard_output(), judgement, project_results(results, Projection()))
    write_files(judgement, getattr(options, "junit", None), getattr(options, "summary", None))
    if not options.no_report:
        from loadstone.report.write import write

        for path in write(judgement, folder.path):
            if path.suffix == ".html":
                console.print(f"report: {path}", style="bold", soft_wrap=True)
    unanswered = any(search.outcome is None or search.outcome.kind == "nothing" for search in judgement.searches)
    return int(unanswered) or exit_status(judgement.expectations)
