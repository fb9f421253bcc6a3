"""hyperfine's JSON (`--export-json`): each timed execution of a command is a repeat."""

from __future__ import annotations

from collections import Counter
from statistics import median

from loadstone.importers.command_line import command_fact
from loadstone.importers.json_text import Document, read_documents
from loadstone.importers.number import number_or_text
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source

NAME = "hyperfine"
TITLE = "hyperfine JSON"
SIGN = '"results"'
CUT = "import the whole file of --export-json"


def recognise_text(text: str) -> bool:
    """Whether the text contains commands with their times."""
    return SIGN in text and '"command"' in text and ('"times"' in text or '"stddev"' in text)


def read_runs(source: Source) -> list[ImportedRun]:
    """Every execution in the file. Raises LoadstoneError if the file is truncated."""
    result: list[ImportedRun] = []

    def read_document(document: Document) -> None:
        for entry in document["results"]:
            result.extend(read_command(entry))

    read_documents(source, SIGN, CUT, read_document, "hyperfine report")
    # A command may occur more than once.
    repeats: Counter[tuple[object, ...]] = Counter()
    for run in result:
        key = (run.variant, *run.dimensions.items())
        repeats[key] += 1
        run.repeat = repeats[key]
    return result


def read_command(entry: Document) -> list[ImportedRun]:
    """The executions of a command. Raises LookupError if there are no times, ValueError if they are inconsistent."""
    codes, memory = entry.get("exit_codes") or [], entry.get("memory_usage_byte") or []
    parameters = {name: number_or_text(str(text)) for name, text in entry.get("parameters", {}).items()}
    result = []
    for number, seconds in enumerate(entry["times"]):
        run = ImportedRun(variant=command_fact(str(entry["command"])), repeat=number + 1, dimensions=dict(parameters))
        run.facts |= {"tool": NAME, "command": command_fact(str(entry["command"]))}
        run.add_figure("time", float(seconds) * 1e9, "ns", 1)
        if number < len(memory):
            run.add_figure("memory_max", float(memory[number]), "B", 1)
        if number < len(codes) and codes[number] != 0:
            run.end = "failed"
            # A command that was killed by a signal has no exit status.
            message = "killed by a signal" if codes[number] is None else f"exit status {codes[number]}"
            run.add_note("failed", message, "see the command's own output")
        result.append(run)
    if not result:
        raise LookupError("a command has no times")
    mean = sum(entry["times"]) / len(result)
    if abs(mean - float(entry["mean"])) > 1e-6 * abs(mean) or (codes and len(codes) != len(result)):
        raise ValueError("the times of a command contradict its mean or its exit codes")
    for name, summary in (("median", median), ("min", min), ("max", max)):
        if name in entry and abs(summary(entry["times"]) - float(entry[name])) > 1e-6 * abs(mean):
            raise ValueError(f"the times of a command contradict its {name}")
    return result
