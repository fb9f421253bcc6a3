"""Code that all commands of the lab share: options, error messages and exit statuses."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from loadstone.errors import LoadstoneError
from loadstone.format.suggestion import suggest_name
from loadstone.format.wording import replace_controls
from loadstone.results.folder import ROOT


class UsageError(LoadstoneError):
    """The command line is invalid."""

    exit_status = 2


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose errors have hints."""

    def __init__(self, command: str, description: str, epilog: str = "", hints: Mapping[str, str] = {}) -> None:
        super().__init__(
            prog=f"loadstone {command}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._command = command
        # Hints for unknown options, keyed by the option without hyphens; `{value}` is replaced by the option's value.
        self._hints = hints

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        unknown = re.match(r"unrecognized arguments: (--?)([\w.-]+)(?:[ =](\S+))?", message)
        hint = self._hints.get(unknown[2], "").replace("{value}", unknown[3] or "…") if unknown else ""
        if unknown and not hint and unknown[1] == "--":
            hint = self.suggest_option(unknown[2], unknown[3] or "…")
        raise UsageError(message, hint or f"`loadstone {self._command} --help` shows the options")

    def suggest_option(self, name: str, value: str) -> str:
        """A hint for an unknown option: a key of the experiment's file, or a similar option; empty if neither fits."""
        options = [option[2:] for action in self._actions for option in action.option_strings if option[:2] == "--"]
        if self._command == "run":
            from loadstone.experiment.model.experiment import Experiment, Measure

            for keys, prefix in ((Experiment.model_fields, ""), (Measure.model_fields, "measure.")):
                if name in keys:
                    return f"this is a key of the experiment file: use --set {prefix}{name}={value}"
        return suggest_name(name, options, "--{}".format)

    def results_at(self) -> None:
        """Adds the argument that names results."""
        self.add_argument(
            "results_at", metavar="DIR|FILE|NAME", help="a result folder, an experiment's name, or a file"
        )

    def results_option(self) -> None:
        """Adds `--results`."""
        self.add_argument(
            "--results",
            metavar="DIR",
            type=Path,
            default=ROOT,
            help="the directory of result folders (default: %(default)s)",
        )

    def expect_options(self) -> None:
        """Adds the options for expectations and their output."""
        self.add_argument(
            "--expect",
            metavar="CONDITION",
            action="append",
            default=[],
            help="a condition, such as 'read.p99 < 10ms', 'errors == 0' or 'throughput >= 0.95x' (x: relative to the"
            " baseline); exit status 1 if it is false, 3 if undecided",
        )
        self.add_argument("--junit", metavar="FILE", type=Path, help="write the expectations as JUnit XML")
        self.add_argument("--summary", metavar="FILE", type=Path, help="write a summary in Markdown for a pull request")

    def show_options(self) -> None:
        """Adds the options that regroup tables, as in benchstat, and that select the output format."""
        for name, what in (("table", "tables"), ("row", "rows"), ("col", "columns")):
            self.add_argument(
                f"--{name}", metavar="KEYS", help=f"the dimensions or facts that form the {what}, separated by commas"
            )
        self.add_argument("--filter", metavar="EXPR", default="", help="only matching trials: 'system:lmdb -clients:1'")
        self.add_argument("--metric", metavar="NAMES", help="metrics, separated by commas (read.p99,throughput)")
        self.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="change the question of existing results: compare.baseline=…, compare.guarantees=[durability],"
            " compare.matters=2%%, claims=device, checks.errors.share=0.01",
        )
        self.add_argument("--rank-invalid", action="store_true", help="also compare invalid trials")
        self.results_option()
        self.add_argument("--json", action="store_true", help="print one JSON document")


def check_conditions(conditions: Sequence[str]) -> None:
    """Raises UsageError for the first condition of `--expect` that is not valid."""
    from loadstone.search.objective import parse_expectations

    for text in conditions:
        try:
            parse_expectations(text)
        except ValueError as error:
            message, hint = error.args
            raise UsageError(f"--expect: {message}", hint) from None


def join_filters(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `--filter -clients:1` joined by =, because argparse would mistake the value for an option."""
    result: list[str] = []
    for word in arguments:
        filtering = result[-1:] == ["--filter"] and "--" not in result
        if filtering and word.startswith("-") and not word.startswith("--") and ":" in word:
            result[-1] = f"--filter={word}"
        else:
            result.append(word)
    return result


def guard_command(run: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """Makes a command print errors, and return a status for them: 2 for wrong usage, 130 after Ctrl-C, usually 1."""

    def main(arguments: list[str]) -> int:
        for name in ("stdout", "stderr"):
            # A stream that was closed when Python started is None.
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
            # A name from a foreign file or directory may have characters that the terminal cannot show. In the C
            # locale, Python's default is `surrogateescape`.
            sys.stdout.reconfigure(errors="backslashreplace")
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (cast(TextIO, PlainStream(stream)) for stream in streams)
        try:
            try:
                return run(arguments)
            finally:
                # An error while the interpreter exits would have no message.
                sys.stdout.flush()
        except LoadstoneError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            hint = "check the file system, then try again; finished trials are kept"
            print(LoadstoneError(f"{where}{error.strerror or error}", hint), file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130
        finally:
            sys.stdout, sys.stderr = streams

    return main


class OutputStream:
    """Standard output or standard error, which discards output after the reader has closed the pipe.

    The command still writes its files, and its exit status states its result.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes text."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._discard_output()
            return len(text)

    def flush(self) -> None:
        """Writes buffered text."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._discard_output()

    def _discard_output(self) -> None:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class PlainStream(OutputStream):
    """A stream with control characters replaced, because text from a file may contain them.

    A `PlainConsole` bypasses this class: the console replaces control characters before it adds escape sequences.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.rich_proxied_file = OutputStream(stream)

    def write(self, text: str) -> int:
        """Writes text with control characters replaced."""
        return super().write(replace_controls(text))


def check_gate(junit: Path | None, expectations: Sequence[str]) -> None:
    """Raises UsageError if `--junit` would report success only because there are no expectations."""
    if junit is not None and not expectations:
        hint = "add `expect:` to the file, or --expect 'read.p99 < 10ms'"
        raise UsageError(f"nothing to write to {junit}: there are no expectations", hint)
