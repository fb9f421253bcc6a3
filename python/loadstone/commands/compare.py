"""`loadstone compare A B…` compares runs, or files from other tools, with the first run or file."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from loadstone.commands.open_results import open_results
from loadstone.commands.parser import CommandParser, check_conditions, check_gate, guard_command, join_filters
from loadstone.commands.show_results import add_expectations, show_results
from loadstone.experiment.interleaved import deciding_experiment
from loadstone.importers.facts import parse_fact
from loadstone.judge.finding import ORDER_OF_RUNS, Verdict
from loadstone.report.expectations import exit_status
from loadstone.results.union import RUN, join_results
from loadstone.statistics.estimate import REPEATS_MIN


@guard_command
def main(arguments: list[str]) -> int:
    """Prints the comparison of the named results. The exit status is 1 if an expectation is false, 3 if an
    expectation is undecided."""
    parser = CommandParser(
        "compare",
        "Compare results with the first side. A side is a result, or several runs separated by commas.\n"
        "Runs differ from day to day, so a claim needs six alternating runs of each side.",
    )
    parser.add_argument("results_at", metavar="DIR|FILE|NAME[,…]", nargs="+", help="result folders, names or files")
    parser.add_argument(
        "--fact",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a fact about all files (for facts about one side: FILE.facts.yaml)",
    )
    parser.show_options()
    parser.expect_options()
    options = parser.parse_args(join_filters(arguments))
    if len(options.results_at) < 2:
        parser.error("a comparison needs at least two results")
    facts = dict(map(parse_fact, options.fact))
    sides = [
        [open_results(run, options.results, facts) for run in split_side(side, options.results)]
        for side in options.results_at
    ]
    if grouped := group_numbered(options.results_at):
        print(f"hint: each result is a separate side; to group runs into sides: {grouped}", file=sys.stderr)
    check_conditions(options.expect)
    results = add_expectations(join_results(sides), options.expect)
    check_gate(options.junit, results.question.expect)
    judgement = show_results(results, options)
    is_open = any(item.holds is None and item.unit == "×" for item in judgement.expectations)
    # More runs do not supply unknown facts.
    lacks_only_facts = bool(judgement.comparisons) and all(
        item.verdict == Verdict.UNCHECKED
        and item.ratio.n >= REPEATS_MIN
        and not any(ORDER_OF_RUNS in finding.message for finding in item.findings)
        for item in judgement.comparisons
    )
    if is_open and not lacks_only_facts and not options.json:
        print(deciding_experiment(sides, results.question.expect, results.dimensions[RUN]))
    if options.junit or options.summary:
        # Imported late, because importing the packages for charts takes longer than printing the help text.
        from loadstone.report.expectation_files import write_files

        write_files(judgement, options.junit, options.summary)
    return exit_status(judgement.expectations)


def split_side(side: str, root: Path) -> list[str]:
    """Splits a side at its commas into names of runs, unless the whole text is a path or an experiment below `root`."""
    return [side] if Path(side).exists() or (root / side).exists() else side.split(",")


def group_numbered(sides: Sequence[str]) -> str:
    """Suggests a command that groups names into sides if the names differ only in numbers, as in `a-*.log b-*.log`.

    Empty unless at least two sides would have several runs; also empty if a side already has several runs.
    """
    if any("," in side for side in sides):
        return ""
    groups: dict[str, list[str]] = {}
    for side in sides:
        groups.setdefault(re.sub(r"\d+", "#", side), []).append(side)
    runs = [",".join(names) for names in groups.values()]
    return "loadstone compare " + " ".join(runs) if len([run for run in runs if "," in run]) > 1 else ""
