"""Comments that users added after the figures in a line.

A comment with a mark (`# slow`) is always removed. Other text after a figure is a comment if the importer can read the
line only without this text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.importers.unit import base_unit

if TYPE_CHECKING:
    from loadstone.importers.run import ImportedRun
    from loadstone.importers.source import Source

    Read = Callable[[Source], list[ImportedRun]]

# Lines longer than this are JSON documents, which have no comments.
COMMENTED_MAX = 1000
# A comment that a user added after a figure: it begins with a mark, an arrow, another symbol, or Chinese, Japanese or
# Korean text. `<=`, `---` and `#,` are not marks, because several reports contain them.
COMMENT = re.compile(
    r"(?<=\S)\s+((?:#+(?=[^\W\d]|\s)|//|/\*|\*\*(?=\w)|<-+(?!\S)|<(?:=|<)+[=<](?!\S)|(?<!-)--(?=\s+[^\W\d])|[-=]+>(?!\S)"
    r"|[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]).*|!+|\*{1,3}|\.{3})$"
    r"|(?<=[\d)\]%\"])\s*([\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff08-\uff60].*)$"
    r"|(?<=[A-Za-z])(\uff08.*)$"
)
# The places where a comment may begin: blanks, possibly after punctuation, and Chinese, Japanese or Korean text. The
# spaces that separate thousands in some locales are not blanks.
BEGIN = re.compile(
    r"(?<=\S)(?:(?<=[\w%)\]\"])[:;,!?]+)?[ \t]+(?=\S)"
    r"|(?<=\S)(?=[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff08-\uff60])"
)
NUMBER = re.compile(r"(?:,\s*)?\d")
WORD = re.compile(r"[A-Za-zµμ%][\w/%]*")
# If more lines than this differ only in their digits, a program wrote them.
REPEATED_MAX = 20
# The number of lines that the search for comments may read in all passes, and the minimum number of passes.
LINES_MAX, ROUNDS_MIN = 500_000, 12
LINE_SHOWN, NAME_SHOWN = 80, 45


def split_marked(line: str) -> tuple[str, str]:
    """A line without its marked comment, and the comment."""
    if len(line) >= COMMENTED_MAX:
        return line, ""
    if match := COMMENT.search(line):
        return line[: match.start()].rstrip(), match[match.lastindex or 0]
    return line.rstrip(), ""


def list_cuts(line: str, ambiguous: bool = False) -> list[int]:
    """The places after a figure where a comment may begin, the last place first.

    A place is ambiguous if a unit or another number follows, which may belong to the figure. The result contains either
    only ambiguous or only unambiguous places.
    """
    text = line.rstrip()
    if len(text) >= COMMENTED_MAX:
        return []
    places = [match for match in BEGIN.finditer(text) if any(map(str.isdigit, text[: match.start()]))]
    return [
        match.start()
        for match in reversed(places)
        if is_ambiguous(text[: match.start()], text[match.start() :].strip()) is ambiguous
    ]


def is_ambiguous(before: str, after: str) -> bool:
    """Whether `after` may continue the figure at the end of `before`."""
    word = WORD.match(after)
    return (before[-1].isdigit() and NUMBER.match(after) is not None) or (
        word is not None and base_unit(word[0]) is not None
    )


def filter_unique(lines: Sequence[str], indices: Sequence[int]) -> list[int]:
    """The indices of lines to which a user may have added a comment, excluding the lines that a program repeats."""
    shapes = {index: re.sub(r"\d+", "0", lines[index]) for index in indices}
    counts = Counter(shapes.values())
    return [index for index, shape in shapes.items() if counts[shape] <= REPEATED_MAX]


def read_commented(
    source: Source, read: Read, result: list[ImportedRun], error: LoadstoneError | None
) -> list[ImportedRun]:
    """The runs of a file whose lines may have comments; `result` or `error` is the outcome of the first pass.

    Raises LoadstoneError if the file is damaged, or if text after a figure may be part of the figure.
    """
    best: list[ImportedRun] | None = None if error else result
    last = source
    cuts = find_cuts(last, read)
    for choice in (cuts, *({index: cut} for index, cut in cuts.items())):
        again = source.restart({**last.cuts, **choice})
        with suppress(LoadstoneError):
            complete = read(again)
            if best is None or has_figures_of(complete, best):
                best, last = complete, again
                if choice is cuts:
                    break
    if unclear := find_cuts(last, read, ambiguous=True):
        report_unclear(last, read, best, unclear)
    if best is None:
        raise error or source.error_at("the file has no results", "import the whole output of the tool")
    source.used.update(last.used)
    return best


def find_cuts(source: Source, read: Read, ambiguous: bool = False) -> dict[int, int]:
    """For each line that can be read only without the text after its figure: the end of the figure, by line index.

    Lines after an unreadable line are reached only when the unreadable line has been cut, so the search is repeated.
    """
    cuts: dict[int, int] = {}
    sample = source
    rounds = min(max(LINES_MAX // len(source.lines), ROUNDS_MIN), COMMENTED_MAX)
    while rounds > 0:
        unread = [index for index in sample.unread if index in sample.passed and index not in cuts]
        places = {index: list_cuts(source.lines[index], ambiguous) for index in filter_unique(source.lines, unread)}
        before = len(cuts)
        for number in range(max(map(len, places.values()), default=0)):
            choice = {index: ends[number] for index, ends in places.items() if number < len(ends) and index not in cuts}
            if not choice or rounds <= 0:
                break
            rounds -= 1
            again = source.restart({**source.cuts, **cuts, **choice})
            with suppress(LoadstoneError):
                read(again)
            cuts |= {index: end for index, end in choice.items() if index in again.used}
        if len(cuts) == before:
            break
        sample = source.restart({**source.cuts, **cuts})
        with suppress(LoadstoneError):
            read(sample)
    return cuts


def has_figures_of(complete: Sequence[ImportedRun], partial: Sequence[ImportedRun]) -> bool:
    """Whether `complete` has at least as many runs as `partial`, and every figure of `partial`."""
    more, fewer = (Counter(value.metric for run in runs for value in run.values) for runs in (complete, partial))
    return len(complete) >= len(partial) and more >= fewer


def report_unclear(source: Source, read: Read, runs: list[ImportedRun] | None, cuts: Mapping[int, int]) -> None:
    """Adds each line whose figure may continue after a blank to the unknown names of `runs`.

    Raises LoadstoneError if other figures depend on these lines.
    """
    complete: list[ImportedRun] | None = None
    with suppress(LoadstoneError):
        complete = read(source.restart({**source.cuts, **cuts}))
    if complete is None:
        return
    if runs is None or not has_values_of(complete, runs):
        index = min(cuts)
        message = f'text after a figure may be part of the figure: "{source.lines[index].strip()[:LINE_SHOWN]}"'
        raise source.error_at(message, "remove the text after the figure", index)
    for run in runs:
        run.unknown |= {f"line {index + 1}: {source.lines[index].strip()[-NAME_SHOWN:]}": None for index in cuts}


def has_values_of(complete: Sequence[ImportedRun], partial: Sequence[ImportedRun]) -> bool:
    """Whether `complete` has as many runs as `partial`, and every figure of `partial` with the same value."""
    return len(complete) == len(partial) and all(
        {(value.metric, value.value) for value in run.values} >= {(value.metric, value.value) for value in part.values}
        for run, part in zip(complete, partial, strict=True)
    )
