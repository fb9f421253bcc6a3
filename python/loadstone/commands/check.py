"""`loadstone check DIR`: prints the judge's findings; the exit status says whether the results are valid."""

from __future__ import annotations

from rich.text import Text

from loadstone.commands.opening import open_results
from loadstone.commands.parser import Parser, guarded
from loadstone.format import units
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge
from loadstone.report.terminal import standard_output, tables


@guarded
def main(arguments: list[str]) -> int:
    """Prints findings. Exit status 0 if no result is suspect or invalid, else 1."""
    parser = Parser(
        "check",
        "Check results. Exit status 0 if none is suspect or invalid, else 1.",
        "docs/checks/ describes every check.",
    )
    parser.results_at()
    parser.results_option()
    parser.add_argument("-v", "--verbose", action="store_true", help="print every finding, not a few of each check")
    options = parser.parse_args(arguments)
    results = open_results(options.results_at, options.results)
    judgement = judge(results)
    console = standard_output()
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    for line in tables.findings(judgement, whole=options.verbose):
        console.print(line, soft_wrap=True)
    console.print(f"{results.name}: {units.count(len(results.trials))} trials, {judgement.trust}", markup=False)
    return int(judgement.verdict > Verdict.UNCHECKED)
