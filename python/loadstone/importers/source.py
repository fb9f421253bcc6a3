"""A file to be imported: its text, and errors that state a location in the file."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.importers.command_line import join_continued
from loadstone.importers.comments import split_marked
from loadstone.results.trial_result import Scalar

# No log has lines longer than this. A JSON document may have longer lines, so it is read from the complete text.
LINE_MAX = 1 << 18
SNIFFED = 1 << 16
# Control sequences (ECMA-48) for colours and cursors, titles (OSC), character sets and keypads.
ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
MARKS = ((b"\xff\xfe\0\0", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
# The prefix that log collectors add to a line: a container's name, or a time and possibly a level.
COLLECTED = re.compile(r"^\S+\s*\|$|\d\d:\d\d:\d\d")
# Prefixes that most lines of a file have, some with the name of the line's origin: docker compose, Kubernetes (CRI),
# `docker logs -t`, `kubectl logs --prefix`, syslog (RFC 3164), journald, CloudWatch, Jenkins, Avocado, three formats
# of moreutils' `ts`, `mpirun --tag-output`, `fio --client` and quoted mail.
COLLECTORS = (
    re.compile(r"(?P<origin>[\w./-]+)[ \t]*\| ?"),
    re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) (?P<origin>stdout|stderr) [FP] "),
    re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4} (?P<origin>\S+ [\w./-]+(?:\[\d+\])?): "),
    re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) (?P<origin>[A-Za-z][\w.-]*/[\w./-]+) "),
    re.compile(r"(?P<origin>)\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d) "),
    re.compile(r"(?P<origin>\[[\w./-]+/[\w./-]+\]) "),
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<origin>\S+ [\w./-]+(?:\[\d+\])?): "),
    re.compile(r"(?P<origin>)\[\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)\] ?"),
    re.compile(r"(?P<origin>)\d\d:\d\d:\d\d [A-Z]+ *\| \[std(?:out|err)\] ?"),
    re.compile(r"(?P<origin>)[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ?"),
    re.compile(r"(?P<origin>)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: |$)"),
    re.compile(r"(?P<origin>)\d\d:\d\d:\d\d(?: |$)"),
    re.compile(r"\[\d+,(?P<origin>\d+)\]<std(?:out|err)>:"),
    re.compile(r"<(?P<origin>[\w.-]+)> ?"),
    re.compile(r"(?P<origin>)> ?"),
)
# The line numbers of `cat -n` and `grep -n`, which increase by 1.
NUMBERED = re.compile(r" *(\d+)[\t:]")
# `pdsh` and `mpirun` put a host before every line, so if any line has no such prefix, the text does not come from them.
HOST = re.compile(r"(?P<origin>[\w.-]+):(?: |$)")
# The prefix of `parallel --tag`, also on every line. A table may contain tabs as well.
TAGGED = re.compile(r"(?P<origin>[\w.@-]+)\t")
# Keys of a line's text in the JSON of collectors and loggers, in lower case. These keys may also be in nested objects.
MESSAGE_KEYS = (
    "log", "message", "msg", "text", "line", "body", "textpayload", "content", "data", "event", "output", "stdout",
    "_raw",
)  # fmt: skip
# Keys of the origin of a line: a container, a host or a process.
ORIGIN_KEY = re.compile(r"(?i).*(?:pod|container|host|unit|identifier|service|instance|node|pid)(?:_?(?:name|id))?")
JSON_LINE = re.compile(r"\s*\{.*\}\s*")
# The lines of logrus, slog and Docker's own log, which have a message and at least one other `name=value` pair.
LOGFMT_PAIR = re.compile(r"([A-Za-z][\w.]*)=(\"(?:[^\"\\]|\\.)*\"|[^\s\"=]*)(?:\s+|$)")
LOGFMT_LINE = re.compile(rf"(?=.*\b(?:msg|message)=)(?:{LOGFMT_PAIR.pattern}){{2,}}")
# A string with several lines, as in the output of Ansible.
TEXT_VALUE = re.compile(r'(?m)^[ \t]*"[\w.]+":[ \t]*("(?:[^"\\\n]++|\\.)*+"),?[ \t\r]*$')
# The minimum share of a file's text that the string must cover.
VALUE_SHARE = 0.8
# Bytes that are not UTF-8, and the µ of Latin-1, even if it was converted twice.
FOREIGN = re.compile("\u00c2(?=[\u00b5\u00a0])|[\udc80-\udcff]")
LATIN = {"\u00c2": "", "\udcb5": "\u00b5"}
# The no-break spaces of web pages, but not thousands separators.
NO_BREAK_SPACE = re.compile("(?<!\\d)\u00a0|\u00a0(?!\\d)")
# The line breaks of Markdown and HTML.
BREAK = re.compile(r"\s*<br\s*/?>\s*$|(?<=\S)\s+\\$")
# A line in a list of strings, as in the output of Ansible. A row of a table does not match: it has several strings.
QUOTED = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*$')
# The indentation of code blocks in Markdown.
INDENTS = ("    ", "\t")
COLLECTED_SHARE = 0.8
# A line in place of lines that a user removed.
ELIDED = re.compile(r"[\s|(<\[]*(?:\.{3,}|\u2026|\u22ee|snip(?:ped)?)[\s|)>\]]*", re.IGNORECASE)
# The number of leading letters that lines must share to count as rows of one table.
ROW_WORDS = 6
# The level of a line in a log; `split_prefix` represents the level by a private-use character.
LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\b")
LEVEL_SIGN = "\ue000"
# The maximum number of words in a prefix that names the origin of a line, and the maximum number of origins.
ORIGIN_WORDS, ORIGINS_MAX = 3, 16
# If there are fewer lines than this, they may start with the same text by chance.
PREFIXED_MIN = 5
COLLECTED_SAMPLE = 200


@dataclass(frozen=True)
class Source:
    """The text of a file, with its path and the known facts about it."""

    path: Path
    text: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    # For `import --explain`: the indices of the lines read, and the JSON documents, which record the keys read.
    used: set[int] = field(default_factory=set)
    documents: list[Any] = field(default_factory=list)
    # The prefix that an unknown log collector put before every line, and that was removed from the text.
    prefix: str = ""
    # For each line that can be read only without the text after its figure: the end of the figure, by line index.
    cuts: Mapping[int, int] = field(default_factory=dict)
    # The indices of the lines that an importer reached, whether or not it read them.
    passed: set[int] = field(default_factory=set)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without line ends and text that a terminal would overwrite; a continued command is one line."""
        return join_continued(tidy_line(line) for line in self.text.split("\n"))

    @property
    def bare_lines(self) -> Iterator[str]:
        """Yields the lines without the comments that follow figures."""
        for index in range(len(self.lines)):
            yield self.split_comment(index)[0]
            self.passed.add(index)

    def split_comment(self, index: int) -> tuple[str, str]:
        """A line without its comment, and the comment."""
        line = self.lines[index]
        if index in self.cuts:
            return line[: self.cuts[index]].rstrip(), line[self.cuts[index] :].strip()
        return split_marked(line)

    @property
    def comments(self) -> list[str]:
        """The comments in the lines that were read."""
        return [comment for index in sorted(self.used) if (comment := self.split_comment(index)[1])]

    def restart(self, cuts: Mapping[int, int]) -> Source:
        """A copy with other cuts, in which no line counts as read yet."""
        return replace(self, used=set(), documents=[], passed=set(), cuts=cuts)

    @property
    def torn(self) -> bool:
        """Whether the last line does not end in a newline."""
        return not self.text.endswith("\n")

    @property
    def unread(self) -> list[int]:
        """The indices of the non-empty lines that were not read."""
        return [index for index, line in enumerate(self.lines) if line.strip() and index not in self.used]

    @cached_property
    def row_gaps(self) -> frozenset[int]:
        """The indices of the lines that follow a mark of removed lines, and that resemble the line before the mark."""
        starts = [re.sub(r"[\W\d]", "", line)[:ROW_WORDS] for line in self.lines]
        return frozenset(
            index
            for index in range(2, len(self.lines))
            if ELIDED.fullmatch(self.lines[index - 1]) and starts[index - 2] == starts[index]
        )

    @property
    def last(self) -> int:
        """The index of the last non-empty line."""
        return max((index for index, line in enumerate(self.lines) if line.strip()), default=0)

    @contextmanager
    def report_damage(self, message: str, hint: str, line: int | None = None) -> Iterator[None]:
        """Converts errors in part of this file to LoadstoneError; `{error}` in the message is replaced by the error."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.error_at(message.replace("{error}", str(error)), hint, line) from None

    def error_at(self, message: str, hint: str, line: int | None = None) -> LoadstoneError:
        """An error about this file, or about the line with this index (from 0)."""
        location = self.path.name if line is None else f"{self.path.name}:{line + 1}"
        return LoadstoneError(f"{message} ({location})", hint)


def tidy_line(line: str) -> str:
    """A line without the parts that a terminal would overwrite; empty if it is too long for a log."""
    if len(line) > LINE_MAX:
        return ""
    line = line.rstrip("\r")
    return line.rpartition("\r")[2] if "\r" in line else line


def text_of(path: Path) -> str:
    """A file's text without a collector's additions. Raises LoadstoneError if it is unreadable, empty or not text."""
    return strip_collector(decode_file(path))


def decode_file(path: Path) -> str:
    """Reads a file as text. Raises LoadstoneError if it cannot be read, is empty or is not text."""
    if path.exists() and not path.is_file() and not path.is_dir():
        # Reading a pipe may block forever.
        hint = "name a file with results; save a pipe's output to a file first"
        raise LoadstoneError(f"{path} is not a file", hint)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoadstoneError(f"cannot read {path}: {error.strerror}", "name a file with results") from error
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), None) or detect_utf16(data) or "utf-8"
    if encoding.startswith("utf-8") and b"\0" in data[:SNIFFED]:
        raise LoadstoneError(
            f"{path.name} is a binary file, not a log",
            "unpack it if it is compressed; `loadstone import` reads text, JSON, CSV and .hlog",
        )
    # Python's utf-16 and utf-32 have no `surrogateescape`.
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    text = FOREIGN.sub(lambda match: LATIN.get(match[0], "\ufffd"), data.decode(encoding, errors=errors))
    text = text.replace("\ufeff", "")
    text = text if "\n" in text else end_lines(text)
    text = ANSI.sub("", text) if "\x1b" in text else text
    text = NO_BREAK_SPACE.sub(" ", text) if "\u00a0" in text else text
    # The text was copied from the source of an HTML page: no tool prints entities.
    text = html.unescape(text) if "&lt;" in text else text
    if not text.strip():
        raise LoadstoneError(f"{path.name} is empty", "check whether the tool wrote its results elsewhere")
    return text


def end_lines(text: str) -> str:
    """Replaces carriage returns at the ends of lines by line feeds.

    A progress display, whose lines differ only in digits, is returned unchanged: a terminal would overwrite it.
    """
    shapes = {re.sub(r"\d+", "0", line) for line in text.split("\r")}
    return text.replace("\r", "\n") if text.endswith("\r") or len(shapes) >= PREFIXED_MIN else text


def detect_utf16(data: bytes) -> str | None:
    """The variant of UTF-16 without a mark, in which one byte of each Latin character is zero; otherwise None."""
    sample = data[:SNIFFED]
    zeros = [sample[start::2].count(0) / (len(sample) / 2 or 1) for start in (0, 1)]
    if max(zeros) < COLLECTED_SHARE or min(zeros) > 1 - COLLECTED_SHARE or len(data) % 2:
        return None
    return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"


def dedent_blocks(text: str) -> str:
    """Removes the indentation of Markdown code blocks, or the common indentation of all lines."""
    if text.startswith((" ", "\t")) and (whole := textwrap.dedent(text)) != text:
        return whole
    result: list[str] = []
    block: list[str] = []
    for line in text.split("\n"):
        begins = bool(block) or not result or not result[-1].strip()
        if (line.startswith(INDENTS) and begins) or (block and not line.strip()):
            block.append(line)
            continue
        result += [*dedent_lines(block), line]
        block.clear()
    return "\n".join([*result, *dedent_lines(block)])


def dedent_lines(lines: list[str]) -> list[str]:
    """Lines without their common indentation."""
    return textwrap.dedent("\n".join(lines)).split("\n") if lines else []


def read_json_log(text: str) -> str:
    """The messages in a log collector's JSON, or in a single JSON string; other text is returned unchanged."""
    try:
        if (match := TEXT_VALUE.search(text)) and len(match[0]) > VALUE_SHARE * len(text) and r"\n" in match[1]:
            return str(json.loads(match[1]))
        records, is_named = parse_records(text)
        fields = [dict(list_strings(record)) for record in records if isinstance(record, dict)]
        path = find_message_path(fields, is_named)
    except (AttributeError, RecursionError, TypeError, ValueError):
        return text
    if path is None:
        return text
    counts = Counter(key for part in fields for key in part if ORIGIN_KEY.fullmatch("_".join(key[-2:])))
    names = [key for key, count in counts.items() if count == len(fields)]
    groups: dict[tuple[str, ...], list[str]] = {}
    origin: tuple[str, ...] = ()
    remaining = iter(fields)
    for record in records:
        part = next(remaining) if isinstance(record, dict) else {path: str(record)}
        origin = tuple(part[name] for name in names) if isinstance(record, dict) else origin
        if path in part:
            groups.setdefault(origin, []).append(ANSI.sub("", part[path]))
    # Docker repeats the line's end in its message, and splits long lines.
    messages = [message for group in groups.values() for message in group]
    is_split = any(message.endswith("\n") for message in messages)
    return "".join(messages) if is_split else "\n".join([*messages, ""])


def parse_records(text: str) -> tuple[list[Any], bool]:
    """The records of a log, and whether the key of their text must have a known name.

    Records are lines of JSON or logfmt, with any other lines between them, or JSON documents, or the elements of a JSON
    list. A known name is required for documents and lists, because a tool's own report may contain such a list.
    Raises ValueError if the text is not such a log.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    for pattern, parse in ((JSON_LINE, json.loads), (LOGFMT_LINE, parse_logfmt)):
        if sum(pattern.fullmatch(line) is not None for line in lines) >= max(COLLECTED_SHARE * len(lines), 1):
            records = [parse(line) if pattern.fullmatch(line) else line for line in lines]
            return (records, False) if len(records) > 1 else (list_objects(records[0]) or records, True)
    if not text.lstrip().startswith(("{", "[")):
        raise ValueError("the text is not JSON")
    documents, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        documents.append(document)
    return (documents if len(documents) > 1 else list_objects(documents[0]) or documents), True


def list_objects(document: Any) -> list[Any]:
    """The longest list of objects in a document, such as the events of a cloud's log."""
    result: list[Any] = document if isinstance(document, list) and all(isinstance(x, dict) for x in document) else []
    parts = document.values() if isinstance(document, dict) else ()
    return max((result, *map(list_objects, parts)), key=len)


def parse_logfmt(line: str) -> dict[str, str]:
    """The names and values in a line such as `level=info msg="10 rows"`."""
    pairs = LOGFMT_PAIR.findall(line)
    return {name: str(json.loads(value)) if value.startswith('"') else value for name, value in pairs}


def list_strings(record: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the path and the text of each string and number in nested objects. journald prints bytes as numbers."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from list_strings(value, (*path, key))
        elif isinstance(value, str | int | float):
            yield (*path, key), str(value)
        elif isinstance(value, list) and value and all(isinstance(part, int) for part in value):
            yield (*path, key), bytes(value).decode(errors="replace")


def find_message_path(fields: Sequence[Mapping[tuple[str, ...], str]], is_named: bool) -> tuple[str, ...] | None:
    """The path to the log lines in JSON records; None if there is no such path.

    The candidates are the paths with a known name or, if there are none, the paths whose texts mostly contain blanks.
    The candidate with the most distinct texts, ignoring digits, is chosen.
    """
    counts = Counter(path for part in fields for path in part)
    paths = [path for path, count in counts.items() if count >= COLLECTED_SHARE * len(fields)]
    named = [path for path in paths if path[-1].lower() in MESSAGE_KEYS]
    if not named and not is_named and len(fields) >= PREFIXED_MIN:
        paths = [path for path in paths if sum(" " in part.get(path, "") for part in fields) > len(fields) / 2]
    elif not named:
        return None
    shapes = {path: len({re.sub(r"\d+", "0", part.get(path, "")) for part in fields}) for path in named or paths}
    best = max(shapes, key=lambda path: shapes[path], default=None)
    if best is None or (len(fields) == 1 and "\n" not in fields[0][best]):
        return None
    return best if named or shapes[best] >= PREFIXED_MIN else None


def strip_breaks(lines: list[str]) -> list[str]:
    """Removes Markdown or HTML line breaks if most lines end in one; otherwise, a `\\` may continue a command."""
    filled = [line for line in lines if line.strip()]
    if sum(BREAK.search(line) is not None for line in filled) < COLLECTED_SHARE * len(filled) or len(filled) < 2:
        return lines
    return [BREAK.sub("", line) for line in lines]


def strip_quotes(text: str) -> str:
    """The strings in a list of strings; other text is returned unchanged."""
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    matches = [QUOTED.match(line) for line in lines]
    if len(filled) < PREFIXED_MIN or sum(map(bool, matches)) < COLLECTED_SHARE * len(filled):
        return text
    try:
        return "\n".join(json.loads(match[1]) if match else line for match, line in zip(matches, lines, strict=True))
    except (RecursionError, ValueError):
        return text


def strip_numbers(text: str) -> str:
    """Removes line numbers."""
    lines = text.rstrip("\n").split("\n")
    matches = [NUMBERED.match(line) for line in lines]
    if len(lines) < 2 or not all(matches):
        return text
    numbers = [int(match[1]) for match in matches if match]
    if any(after != before + 1 for before, after in pairwise(numbers)):
        return text
    return "\n".join(line[match.end() :] for line, match in zip(lines, matches, strict=True) if match) + "\n"


def strip_collector(text: str) -> str:
    """Removes the prefixes of a log collector, and groups the lines by origin.

    Otherwise, the interleaved output of two containers would be read as the output of a single container.
    """
    text = strip_quotes(strip_numbers(read_json_log(text)))
    lines = strip_breaks(text.split("\n"))
    text = "\n".join(lines)
    if len(lines) > 3 and not any(line.strip() for line in lines[1::2]):
        # Every line is followed by an empty line, as in text copied from web pages and e-mails.
        text = "\n".join(lines[::2]) + "\n"
    text = dedent_blocks(text)
    lines = text.split("\n")
    sample = [line for line in lines if line.strip()][:COLLECTED_SAMPLE]
    tagged = (TAGGED,) if sample and "metric" not in sample[0].lower() else ()
    for pattern in (*COLLECTORS, HOST, *tagged):
        share = 1.0 if pattern in (HOST, TAGGED) else COLLECTED_SHARE
        if sum(pattern.match(line) is not None for line in sample) < share * len(sample) or len(sample) < 2:
            continue
        matches = [pattern.match(line) for line in lines]
        origins = Counter(match["origin"] for match in matches if match)
        if len(origins) > len(sample) / 2:
            # Most lines have different "origins", so the text is a table.
            continue
        groups: dict[str, list[str]] = {origin: [] for origin in origins}
        origin = next(iter(groups))
        for line, match in zip(lines, matches, strict=True):
            origin = match["origin"] if match else origin
            groups[origin].append(line[match.end() :] if match else line)
        # The log of a container may contain the logs of other containers.
        return strip_collector("\n".join(line for group in groups.values() for line in group))
    return text


def split_prefix(text: str) -> tuple[str, str]:
    """The prefix of the first line, and the text without prefixes, if prefixes differ only in digits and log levels.

    Otherwise, an empty prefix and the unchanged text. The tool itself may also have written such a prefix.
    """
    lines = text.split("\n")
    filled = [line.rstrip() for line in lines if line.strip()]
    shapes = [re.sub(r"\d+", "0", LEVEL.sub(LEVEL_SIGN, line)) + " " for line in filled]
    if len(filled) < PREFIXED_MIN:
        return "", text
    pairs = zip(min(shapes), max(shapes), strict=False)
    shared = "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    shape = re.match(r".*\s", shared)
    if shape is None or not shape[0].strip():
        return "", text
    body = r"\d+".join(map(re.escape, shape[0].rstrip().split("0")))
    pattern = re.compile(body.replace(re.escape(LEVEL_SIGN), LEVEL.pattern) + r"(?:\s|$)")
    matches = [pattern.match(line) for line in filled]
    if not matches[0] or not all(matches):
        return "", text
    return matches[0][0], "\n".join(pattern.sub("", line, count=1) for line in lines)


def split_origins(text: str) -> tuple[str, str]:
    """The prefix of the first line, and the text without prefixes, grouped by prefix, if there are only a few prefixes.

    Otherwise, an empty prefix and the unchanged text. `stern` puts the names of pod and container before every line.
    """
    filled = [line for line in text.split("\n") if line.strip()]
    for number in range(ORIGIN_WORDS, 0, -1):
        pattern = re.compile(rf"((?:\S+\s){{{number - 1}}}\S+)(?:\s|$)")
        matches = [pattern.match(line) for line in filled]
        counts = Counter(match[1] for match in matches if match)
        if not all(matches) or not 1 < len(counts) <= ORIGINS_MAX or min(counts.values()) < PREFIXED_MIN:
            continue
        groups: dict[str, list[str]] = {origin: [] for origin in counts}
        for line, match in zip(filled, matches, strict=True):
            if match:
                groups[match[1]].append(line[match.end() :])
        return next(iter(groups)), "\n".join(line for lines in groups.values() for line in lines) + "\n"
    return "", text


def is_log_prefix(before: str) -> bool:
    """Whether the prefix of a log line results only from quoting or from a log collector."""
    before = before.strip(" \t>")
    return not before or COLLECTED.search(before) is not None
