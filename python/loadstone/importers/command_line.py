"""Command lines in logs: their words and options, without passwords. They state facts that reports do not contain."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise, takewhile

from loadstone.importers.number import number_or_text
from loadstone.results.trial_result import Scalar

# The names of options and properties that may contain passwords.
SECRET = re.compile(r"(?i)pass|pwd|secret|token|credential|user")
# Passwords in command lines: name=value, --name value, redis-benchmark's -a, and passwords in URIs.
SECRETS = re.compile(
    r"(?i)((?:[\w.-]*(?:passw|pwd|secret|token|credential|authenticate)[\w.-]*(?:=|:|\s+)"
    r"|(?<!\btee)\s-a\s+|://[^/\s:@]*:))"
    r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"@]+)"
)
# The programs whose commands may continue on the next line.
PROGRAM = re.compile(
    r"ycsb|(?:cassandra|cql)-stress|scylla-bench|pgbench|sysbench|memtier_benchmark|(?:redis|valkey|keydb)-benchmark"
    r"|\b(?:fio|latte|hadoop|yarn|mapred|hbase)\s"
)
# The start of a word that ends the command within a shell line.
ENDS = re.compile(r"[|&;`)]|\d?>")
# The characters that may precede a program in a shell line: part of a path, a prompt, a quotation or a shell operator.
BEFORE = r"(?:^|[\s/\\$`'\"(>;&|])"
# The start of a line that a user typed at a prompt: `$ `, `host:~# `. Markdown's `# ` and `> ` are not prompts.
PROMPTED = r"^\s*(?:[^\s#>\d]\S*[#$%>]|[$%])\s+(?:(?:sudo|time)\s+)?"
TYPED = rf"(?:{PROMPTED}|^\s*(?:(?:sudo|time)\s+)?)"
# The prompt of a shell before a continuation line.
PROMPT = re.compile(r"^\s*(?:>\s|quote>|dquote>)?\s*")


def join_continued(lines: Iterable[str]) -> list[str]:
    """Joins the lines of a command that continues after backslashes; empty lines replace the continuation lines."""
    result: list[str] = []
    start: int | None = None
    for line in lines:
        continues = line.endswith("\\") and (start is not None or PROGRAM.search(line) is not None)
        text = line[:-1].rstrip() if continues else line
        if start is None:
            start = len(result) if continues else None
            result.append(text)
        else:
            result[start] += f" {PROMPT.sub('', text)}"
            result.append("")
            start = start if continues else None
    return result


def find_command(line: str, program: str, arguments_max: int = 0, complete: str | None = None) -> str | None:
    """The command line of a program in a line; None if the line is prose or a figure.

    In a command, an option follows the program's name and at most `arguments_max` arguments. Without an option, the
    command must follow a prompt, or start the line and have arguments that match `complete`.
    """
    if not re.search(program, line):
        return None
    path = r"(?:\S*[/\\])?"
    match = re.search(
        rf"{BEFORE}((?:{program})(?:\.exe)?(?:\s+(?!-)[^\s:|;&]+){{0,{arguments_max}}}?\s+--?[A-Za-z].*)$", line
    )
    match = match or re.search(rf"{PROMPTED}{path}((?:{program})(?:\s+[^\s-].*)?)$", line)
    if match is None and complete is not None:
        match = re.search(rf"{TYPED}{path}((?:{program})\s+(?:{complete})(?:\s*|\s+(?:{ENDS.pattern}).*))$", line)
    if match is None:
        return None
    quote = next((mark for mark in "'\"`" if line.count(mark, 0, match.start(1)) % 2), "\n")
    return match[1].partition(quote)[0]


def split_command(text: str) -> list[str]:
    """The words of a command, up to a shell operator."""
    try:
        arguments = shlex.split(text)
    except ValueError:
        # A quotation mark is not closed: the line is prose, or was truncated.
        arguments = text.split()
    return list(takewhile(lambda word: not ENDS.match(word), arguments))


def parse_options(arguments: Sequence[str], letters: Mapping[str, str], flags: Collection[str]) -> dict[str, str]:
    """The options among arguments, keyed by their long names; `letters` maps short names to long names.

    `flags` are options without a value; their value is `true`. The values of a repeated option are joined.
    """
    result: dict[str, str] = {}
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
        elif word.startswith("-") and word[1:2].isalpha():
            name, equals, value = letters.get(word[1], word[1]), "", word[2:]
            if name in flags and value:
                # Several options share a word: -nS.
                rest.append(f"-{value}")
                value = ""
        else:
            continue
        if not equals and not value:
            value = rest.pop() if name not in flags and rest and not rest[-1].startswith("-") else "true"
        result[name] = f"{result[name]} {value}" if name in result else value
    return result


def option_facts(options: Mapping[str, str], excluded: Collection[str]) -> dict[str, Scalar]:
    """Options as facts about the work, without options that may contain passwords."""
    return {
        f"work.{name.replace('-', '_')}": number_or_text(value)
        for name, value in options.items()
        if name not in excluded and not SECRET.search(name)
    }


def hadoop_facts(command: str, excluded: Collection[str] = ()) -> dict[str, Scalar]:
    """The options of a Hadoop command (`-bufferSize 1000`) and its properties (`-D name=value`), as facts about the
    work."""
    arguments = split_command(command)
    options: dict[str, str] = {}
    for word, following in pairwise([*arguments, "-"]):
        if word.startswith("-D"):
            name, _, value = (word[2:] or following).partition("=")
            options[name] = value
        elif word.startswith("-"):
            options[word[1:]] = "true" if following.startswith("-") else following
    return option_facts(options, excluded)


def command_fact(text: str) -> str:
    """A command line without its passwords, for use as a fact."""
    return SECRETS.sub(r"\1***", " ".join(text.split()))
