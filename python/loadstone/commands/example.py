"""`loadstone example` prints an experiment file to start from. The example files are part of the package."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.format.suggestion import suggest_names

FOLDER = Path(__file__).parent.parent / "examples"


@guard_command
def main(arguments: list[str]) -> int:
    """Prints the named example, or lists the questions of all examples."""
    questions = {path.stem: path.read_text().partition("\n")[0].lstrip("# ") for path in sorted(FOLDER.glob("*.yaml"))}
    listed = "\n".join(f"  {name:<18}{question}" for name, question in questions.items())
    parser = CommandParser(
        "example",
        "Print an experiment file to start from: loadstone example embedded-stores > my.yaml",
        f"examples:\n{listed}",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="one of the examples below (default: list them)")
    options = parser.parse_args(arguments)
    if options.name is None:
        print(listed)
        return 0
    if options.name not in questions:
        hint = suggest_names(options.name, [*questions], "the examples are")
        raise UsageError(f'there is no example "{options.name}"', hint)
    print((FOLDER / f"{options.name}.yaml").read_text(), end="")
    return 0
