"""Filters in the style of benchstat: `system:lmdb`, `clients:(1 OR 2)`, `letter:/[ab]/ AND -system:redb`.

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
HINT = "write a filter such as `system:lmdb AND -clients:(1 OR 2)` or `letter:/[ab]/`"


@dataclass
class FilterParser:
    """Parses a filter; `at` is the position in its text."""

    text: str
    at: int = 0

    def next_token(self) -> re.Match[str] | None:
        """The next token, without consuming it."""
        return TOKEN.match(self.text, self.at) if self.text[self.at :].strip() else None

    def take_token(self) -> re.Match[str]:
        """Consumes the next token."""
        token = self.next_token()
        if token is None:
            raise self.syntax_error("it ends unexpectedly")
        self.at = token.end()
        return token

    def syntax_error(self, what: str) -> LoadstoneError:
        """An error about the filter."""
        return LoadstoneError(f"the filter `{self.text}` is invalid: {what}", HINT)

    def parse_alternatives(self) -> Filter:
        """Parses terms joined by OR, which binds less tightly than AND."""
        alternatives = [self.parse_sequence()]
        while (token := self.next_token()) and token["word"] == "OR":
            self.take_token()
            alternatives.append(self.parse_sequence())
        return (
            alternatives[0]
            if len(alternatives) == 1
            else lambda names: any(alternative(names) for alternative in alternatives)
        )

    def parse_sequence(self) -> Filter:
        """Parses terms joined by AND or without an operator."""
        terms = [self.parse_term()]
        while (token := self.next_token()) and token["word"] != "OR" and token["mark"] != ")":
            if token["word"] == "AND":
                self.take_token()
            terms.append(self.parse_term())
        return terms[0] if len(terms) == 1 else lambda names: all(term(names) for term in terms)

    def parse_term(self) -> Filter:
        """Parses one term."""
        token = self.take_token()
        if token["mark"] in ("-", "("):
            inner = self.parse_term() if token["mark"] == "-" else self.parse_alternatives()
            if token["mark"] == "-":
                return lambda names: not inner(names)
            self.close_parenthesis()
            return inner
        if token["key"] is None:
            raise self.syntax_error(f"`{token[0].strip()}` is not `key:value`")
        key = token["key"].strip('"')
        if token["regex"]:
            return self.parse_pattern(key, token["regex"][1:-1])
        values = self.parse_values() if token["list"] else {token["value"].strip('"')}
        return lambda names: filter_text(names.get(key)) in values

    def parse_pattern(self, key: str, expression: str) -> Filter:
        """Parses a term with a regular expression."""
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise self.syntax_error(f"`/{expression}/` is not a regular expression ({error})") from None
        return lambda names: pattern.search(filter_text(names.get(key))) is not None

    def parse_values(self) -> set[str]:
        """Parses the values of `key:(a OR b)`, after the opening parenthesis."""
        values = {self.take_token()[0].strip().strip('"')}
        while (token := self.next_token()) and token["word"] == "OR":
            self.take_token()
            values.add(self.take_token()[0].strip().strip('"'))
        self.close_parenthesis()
        return values

    def close_parenthesis(self) -> None:
        """Consumes a closing parenthesis."""
        token = self.next_token()
        if token is None or token["mark"] != ")":
            raise self.syntax_error("a `)` is missing")
        self.take_token()


def parse_filter(expression: str) -> Filter:
    """Parses a filter; an empty filter accepts everything. Raises LoadstoneError if it is invalid."""
    parser = FilterParser(expression)
    if parser.next_token() is None:
        return lambda _: True
    try:
        predicate = parser.parse_alternatives()
    except RecursionError:
        raise parser.syntax_error("it is nested too deeply") from None
    if parser.next_token() is not None:
        raise parser.syntax_error("there is one `)` too many")
    return predicate


def filter_text(value: Scalar | None) -> str:
    """A value as written in a filter."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
