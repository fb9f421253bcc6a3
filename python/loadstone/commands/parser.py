"""What the lab's command lines have in common: errors that look like all others, and where results are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from loadstone.errors import LoadstoneError
from loadstone.results.folder import ROOT


class UsageError(LoadstoneError):
    """A command line that makes no sense."""

    exit_status = 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors are a line and a hint."""

    def __init__(self, command: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=f"loadstone {command}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._command = command

    def error(self, message: str) -> NoReturn:
        """Raises what is wrong."""
        raise UsageError(message, f"`loadstone {self._command} --help` shows the options")

    def results_at(self) -> None:
        """Adds what names results."""
        self.add_argument("results_at", metavar="DIR|FILE|NAME", help="a result folder, an experiment's name, a file")

    def results_option(self) -> None:
        """Adds `--results`."""
        self.add_argument(
            "--results", metavar="DIR", type=Path, default=ROOT, help="where result folders are (default: %(default)s)"
        )

    def show_options(self) -> None:
        """Adds benchstat's ways to regroup a table, and how it is printed."""
        for name, what in (("table", "tables"), ("row", "rows"), ("col", "columns")):
            self.add_argument(
                f"--{name}", metavar="KEYS", help=f"dimensions or facts that make the {what}, with commas between"
            )
        self.add_argument("--filter", metavar="EXPR", default="", help="only these trials: 'system:lmdb -clients:1'")
        self.add_argument("--metric", metavar="NAMES", help="metrics, with commas between (read.p99,throughput)")
        self.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="ask something else of the same results: compare.baseline=…, compare.promises=[durability],"
            " compare.matters=2%%, claims=device, checks.errors.share=0.01",
        )
        self.add_argument("--rank-invalid", action="store_true", help="compare trials that are invalid, too")
        self.results_option()
        self.add_argument("--json", action="store_true", help="print one JSON document")


def joined(arguments: Sequence[str]) -> list[str]:
    """The words of a command line, `--filter -clients:1` being one: argparse takes such a filter for an option."""
    words: list[str] = []
    for word in arguments:
        filtering = words[-1:] == ["--filter"] and "--" not in words
        if filtering and word.startswith("-") and not word.startswith("--") and ":" in word:
            words[-1] = f"--filter={word}"
        else:
            words.append(word)
    return words


def guarded(run: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """A command whose errors are printed: exit status 2 for bad usage, 1 for anything else, 130 after Ctrl-C."""

    def main(arguments: list[str]) -> int:
        for name in ("stdout", "stderr"):
            # Python leaves out a stream that was closed before it began.
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        try:
            return run(arguments)
        except LoadstoneError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        except BrokenPipeError:
            # The reader of our output has closed it; the interpreter must not try to flush it.
            sys.stderr.close()
            return 1
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            hint = "what was measured before is kept; see to the file system, then try again"
            print(LoadstoneError(f"{where}{error.strerror or error}", hint), file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130

    return main
