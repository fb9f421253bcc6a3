"""`loadstone doctor`: whether this machine is fit to measure on, and the commands that make it so."""

from __future__ import annotations

import json

from loadstone.commands.parser import Parser, UsageError, guarded
from loadstone.doctor.examination import CLIENTS, document, examine, fit, report
from loadstone.doctor.snapshot import snapshot


@guarded
def main(arguments: list[str]) -> int:
    """Prints every check; exit status 1 if any fails."""
    parser = Parser(
        "doctor",
        "Look whether this machine is fit to measure on. Exit status 0 if nothing fails, 1 otherwise; warnings pass.",
        "docs/reference/doctor.md tells what is looked at and why. Nothing is changed: run what you agree with.",
    )
    parser.add_argument(
        "--clients", metavar="N", default=str(CLIENTS), help="how many it is to carry (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.results_option()
    options = parser.parse_args(arguments)
    clients = number(options.clients)
    found = examine(snapshot(results=options.results), clients)
    print(json.dumps(document(found, clients), indent=2) if options.json else report(found))
    return 0 if fit(found) else 1


def number(text: str) -> int:
    """A number of clients. Raises UsageError."""
    plain = text.replace(",", "").replace("_", "")
    if not plain.isascii() or not plain.isdigit() or int(plain) == 0:
        raise UsageError(f'--clients must be a whole number of at least 1, got "{text}"', "write --clients 1000")
    return int(plain)
