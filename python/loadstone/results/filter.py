"""Filters, in the manner of benchstat: `system:lmdb`, `clients:(1 OR 2)`, `letter:/[ab]/ AND -system:redb`.

A term is `key:value`, `key:/regular expression/` or `key:(value OR value)`; terms are joined by AND (or nothing) and
OR, negated by `-`, and grouped by parentheses. Keys are dimensions, facts, `repeat`, `clients`, `trial` and `end`.
(<https://pkg.go.dev/golang.org/x/perf/benchproc/syntax>)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.errors import LoadstoneError
from loadstone.results.trial_result import Scalar

Names = Mapping[str, Scalar | None]
Filter = Callable[[Names], bool]

TOKEN = re.compile(
    r"""\s*(?:
        (?P<mark>[()-])
      | (?P<key>"[^"]*"|[^\s():"/-][^\s():"]*):
        (?:(?P<regex>/(?:[^/\\]|\\.)*/)|(?P<list>\()|(?P<value>"[^"]*"|[^\s()"]+))
      | (?P<word>AND|OR)\b
      | (?P<bare>"[^"]*"|[^\s()]+)
    )""",
    re.VERBOSE,
)
HINT = "a filter is like `system:lmdb AND -clients:(1 OR 2)` or `letter:/[ab]/`"


@dataclass
class Parser:
    """A filter's text and the position in it."""

    text: str
    at: int = 0

    def next(self) -> re.Match[str] | None:
        """The next token, without consuming it."""
        return TOKEN.match(self.text, self.at) if self.text[self.at :].strip() else None

    def take(self) -> re.Match[str]:
        """Consumes the next token."""
        token = self.next()
        if token is None:
            raise self.wrong("it ends too early")
        self.at = token.end()
        return token

    def wrong(self, what: str) -> LoadstoneError:
        """An error about the filter."""
        return LoadstoneError(f"the filter `{self.text}` cannot be read: {what}", HINT)

    def alternatives(self) -> Filter:
        """Terms joined by OR, which binds less tightly than AND."""
        found = [self.sequence()]
        while (token := self.next()) and token["word"] == "OR":
            self.take()
            found.append(self.sequence())
        return found[0] if len(found) == 1 else lambda names: any(each(names) for each in found)

    def sequence(self) -> Filter:
        """Terms joined by AND or without an operator."""
        found = [self.term()]
        while (token := self.next()) and token["word"] != "OR" and token["mark"] != ")":
            if token["word"] == "AND":
                self.take()
            found.append(self.term())
        return found[0] if len(found) == 1 else lambda names: all(each(names) for each in found)

    def term(self) -> Filter:
        """One term."""
        token = self.take()
        if token["mark"] in ("-", "("):
            inner = self.term() if token["mark"] == "-" else self.alternatives()
            if token["mark"] == "-":
                return lambda names: not inner(names)
            self.close()
            return inner
        if token["key"] is None:
            raise self.wrong(f"`{token[0].strip()}` is not `key:value`")
        key = token["key"].strip('"')
        if token["regex"]:
            return self.pattern(key, token["regex"][1:-1])
        wanted = self.values() if token["list"] else {token["value"].strip('"')}
        return lambda names: text(names.get(key)) in wanted

    def pattern(self, key: str, expression: str) -> Filter:
        """A term with a regular expression."""
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise self.wrong(f"`/{expression}/` is not a regular expression ({error})") from None
        return lambda names: pattern.search(text(names.get(key))) is not None

    def values(self) -> set[str]:
        """The values of `key:(a OR b)`, after the opening parenthesis."""
        found = {self.take()[0].strip().strip('"')}
        while (token := self.next()) and token["word"] == "OR":
            self.take()
            found.add(self.take()[0].strip().strip('"'))
        self.close()
        return found

    def close(self) -> None:
        """A closing parenthesis."""
        token = self.next()
        if token is None or token["mark"] != ")":
            raise self.wrong("a `)` is missing")
        self.take()


def parse(expression: str) -> Filter:
    """Reads a filter; an empty one accepts everything. Raises LoadstoneError if it is invalid."""
    parser = Parser(expression)
    if parser.next() is None:
        return lambda _: True
    try:
        found = parser.alternatives()
    except RecursionError:
        raise parser.wrong("it is nested too deeply") from None
    if parser.next() is not None:
        raise parser.wrong("there is one `)` too many")
    return found


def text(value: Scalar | None) -> str:
    """A value as written in a filter."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
