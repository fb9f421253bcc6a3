"""`loadstone doctor` checks whether this machine is fit for measuring, and prints commands that fix problems."""

from __future__ import annotations

import json
from dataclasses import replace

from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.doctor.diagnosis import CLIENTS, examine_machine, is_fit, render_report, report_document
from loadstone.doctor.snapshot import take_snapshot
from loadstone.faults.support import probe_faults


@guard_command
def main(arguments: list[str]) -> int:
    """Prints every check. The exit status is 1 if any check fails."""
    parser = CommandParser(
        "doctor",
        "Check whether this machine is fit for measuring. Exit status 0 if no check fails, 1 otherwise; warnings pass.",
        "docs/reference/doctor.md describes the checks. Nothing is changed: run the suggested commands yourself.\n"
        "Fault mechanisms are tried on a temporary process, file system and control group.",
    )
    parser.add_argument(
        "--clients", metavar="N", default=str(CLIENTS), help="the number of clients to support (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.results_option()
    options = parser.parse_args(arguments)
    clients = parse_clients(options.clients)
    machine = replace(take_snapshot(results=options.results), unsupported_faults=probe_faults())
    checks = examine_machine(machine, clients)
    print(json.dumps(report_document(checks, clients), indent=2) if options.json else render_report(checks))
    return 0 if is_fit(checks) else 1


def parse_clients(text: str) -> int:
    """Parses the number of clients. Raises UsageError."""
    plain = text.replace(",", "").replace("_", "")
    if not plain.isascii() or not plain.isdigit() or int(plain) == 0:
        raise UsageError(f'--clients must be a whole number of at least 1, got "{text}"', "write --clients 1000")
    return int(plain)
