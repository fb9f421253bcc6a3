"""`loadstone check DIR` prints the judge's findings; the exit status shows whether the results are valid."""

from __future__ import annotations

from rich.text import Text

from loadstone.commands.open_results import open_results
from loadstone.commands.parser import CommandParser, check_conditions, check_gate, guard_command
from loadstone.commands.show_results import add_expectations
from loadstone.format import units
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.report.expectations import exit_status
from loadstone.report.terminal import standard_output, tables


@guard_command
def main(arguments: list[str]) -> int:
    """Prints findings. The exit status is 1 if a result is suspect or invalid, or an expectation is false; 3 if an
    expectation is undecided."""
    parser = CommandParser(
        "check",
        "Check results and expectations. Exit status 1 if any is suspect, invalid or false, 3 if undecided, else 0.",
        "docs/checks/ describes every check.",
    )
    parser.results_at()
    parser.results_option()
    parser.expect_options()
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print every finding, not only a few for each check"
    )
    options = parser.parse_args(arguments)
    check_conditions(options.expect)
    results = add_expectations(open_results(options.results_at, options.results), options.expect)
    check_gate(options.junit, results.question.expect)
    judgement = judge_results(results)
    console = standard_output()
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    for line in tables.findings(judgement, whole=options.verbose):
        console.print(line, soft_wrap=True)
    console.print(f"{results.name}: {units.count_noun(len(results.trials), 'trial')}, {judgement.trust}", markup=False)
    for line in tables.expectations(judgement):
        console.print(line, soft_wrap=True)
    if options.junit or options.summary:
        # Imported late, because importing the packages for charts takes longer than printing the help text.
        from loadstone.report.expectation_files import write_files

        write_files(judgement, options.junit, options.summary)
    return int(judgement.verdict > Verdict.UNCHECKED) or exit_status(judgement.expectations)
