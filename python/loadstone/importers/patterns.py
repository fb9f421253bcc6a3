"""Figures in any tool's text, found by patterns that the user states: `regex: {throughput: ['tps = ([0-9.]+)', op/s]}`.

A pattern must match exactly once, and its group must match a complete number: `([0-9]+)` would read 1,234.5 as 1. A
unit printed after the number must have the stated magnitude, because tools print µs in one run and ms in the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.importers import unit
from loadstone.importers.number import parse_number
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import LINE_MAX, tidy_line

# Characters between the digits of one number: decimal points or commas, and thousands separators.
BETWEEN = r"[.,'\u2019\u00a0\u202f]"
DIGIT_OR_SIGN_BEFORE = re.compile(r"\d$|(?:^|[\s=:(\[])[-\u2212]$")
PART_BEFORE = re.compile(rf"\d{BETWEEN}$|\d[eE][+-]?$")
PART_AFTER = re.compile(rf"\d|{BETWEEN}\d|[eE][+-]?\d")
PRINTED_UNIT = re.compile(r"\s?([A-Za-zµμ%][A-Za-z/%]*)")
# Suffixes without a unit: 12.5k, 3M; 2m.
MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
LONG = {"m": 60e9, "min": 60e9, "h": 3600e9}
# Printed and stated units may differ by less than this factor, except units of time: some tools print MB for MiB, or Mb
# for MB.
MAGNITUDE = 100
WHOLE = "have the group match the complete number: `([0-9.,eE+-]+)`, and write (?:…) for other groups"


def read_figures(text: str, figures: Mapping[str, tuple[str, str]]) -> ImportedRun:
    """A run with the figures in a text; `figures` states the pattern and the unit of each metric.

    Raises LoadstoneError if a pattern does not match exactly one number.
    """
    run = ImportedRun()
    # Progress that a terminal would overwrite is not output.
    text = "\n".join(tidy_line(line) if len(line) <= LINE_MAX else line for line in text.split("\n"))
    for metric, (pattern, name) in figures.items():
        factor, base = unit.base_unit(name) or (1.0, "")
        match = find_match(text, metric, pattern)
        check_unit(match, metric, name)
        number = match[match.re.groups]
        if number.strip().startswith("-"):
            raise LoadstoneError(f"{metric} is negative: {number[:40]}", "compare the pattern with the output")
        run.add_text(metric.lower(), number, factor, base, 1)
    return run


def find_match(text: str, metric: str, pattern: str) -> re.Match[str]:
    """The only match of a pattern. Raises LoadstoneError unless its group (or the match) is a complete number."""
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    if len(matches) != 1:
        count = units.count_noun(len(matches), "match", "matches") if matches else "no match"
        hint = "have the pattern match one line of the output" if matches else "compare the pattern with the output"
        raise LoadstoneError(f"the pattern for {metric} has {count}", hint)
    match = matches[0]
    group = match.re.groups
    if match[group] is None:
        raise LoadstoneError(f'the group in the pattern for {metric} matches nothing in "{match[0][:40]}"', WHOLE)
    try:
        number = parse_number(match[group])
    except ValueError:
        number = None
    if number is None:
        raise LoadstoneError(f'{metric} is not a number: "{match[group][:40]}"', "put the number in a group")
    before, after = text[max(match.start(group) - 3, 0) : match.start(group)], text[match.end(group) :][:3]
    # A separator that is in the pattern itself, as for a row of a table, ends a number.
    is_part = (
        DIGIT_OR_SIGN_BEFORE.search(before)
        or (match.start(group) == match.start() and PART_BEFORE.search(before))
        or (match.end(group) == match.end() and PART_AFTER.match(after))
    )
    if is_part:
        raise LoadstoneError(
            f'{metric} is only part of a number: "{match[group][:40]}" in "{before}{match[group][:40]}{after}"', WHOLE
        )
    return match


def check_unit(match: re.Match[str], metric: str, name: str) -> None:
    """Raises LoadstoneError if the unit printed after a number has a different magnitude from the stated unit."""
    factor, base = unit.base_unit(name) or (1.0, "")
    text = match.string[match.end(match.re.groups) :][:20]
    printed = PRINTED_UNIT.match(text)
    if printed is None:
        return
    word = printed[1]
    known = unit.base_unit(word)
    if known is None and not text[0].isspace():
        suffixes = LONG if base == "ns" else MAGNITUDES if base != "share" else {}
        known = (suffixes[word], base) if word in suffixes else None
    limit = 2 if base == "ns" else MAGNITUDE
    if known is not None and known[1] == base and not 1 / limit < known[0] / factor < limit:
        raise LoadstoneError(
            f'{metric} is printed in "{word}", but the experiment states {name}',
            "state the unit that the tool prints, or have the tool always print the same unit",
        )
