"""STYLE.md's words that are not written here do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_support import ROOT

# As regular expressions, each with what STYLE.md says instead. Verdicts, check pages and the report's prose are still
# written in the old way in places; they are not read here.
PHRASES = {
    r"c(a|o)mes? to nothing|in a row came": "failed",
    r"(?<![Tt]here )\b(is|are|was|were) no (number|name|text|YAML|file|repeat|error|directory|event)\b": "is not a",
    r"\b[Dd]oors?\b": "front end",
    r"has no place (beside|with)": "cannot be combined with",
    r"\bdoes not serve\b": "was not ready",
    r"\bin turns\b": "interleaved",
    r"\bshall\b": "must",
    r"\blast words\b": "the end of its output",
    r"\bnothing says how\b": "no … is configured",
    r"\bstops to pay\b": "no longer pays off",
    r"defect of this engine": "internal error",
    r"the words are the store": "the message above comes from the store",
}
# Names of Python code that say nothing of what they hold, each with what to write. Prose is not read for them.
IDENTIFIERS = {
    "told": "result, reply, response, facts",
    "Told": "CommandResult",
    "said": "output, stderr, message, text",
}
LEFT_OUT = ("docs/checks", "tests/fixtures", "tests/test_style.py", "STYLE.md", "CHANGELOG.md")
SUFFIXES = {".py", ".rs", ".md", ".java", ".yaml"}


def files() -> Iterator[Path]:
    """Everything that is written by hand."""
    for top in ("python", "crates", "java/src", "tests", "docs", "experiments", "benchmarks"):
        yield from (path for path in (ROOT / top).rglob("*") if path.suffix in SUFFIXES)
    yield from ROOT.glob("*.md")


@pytest.mark.parametrize(("phrase", "instead"), PHRASES.items())
def test_a_phrase_that_strangers_stumble_over_is_not_written(phrase: str, instead: str) -> None:
    pattern = re.compile(phrase)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files()
        if not str(path.relative_to(ROOT)).startswith(LEFT_OUT)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"write `{instead}`:\n" + "\n".join(found)


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Every name that a module binds, uses or imports, parameters in a test's list too, each with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.alias(name=name, asname=alias):
                yield node.lineno, alias or name
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[first, *_]):
                for each in ast.walk(first):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield from ((each.lineno, name.strip()) for name in each.value.split(","))


def test_identifiers_are_found_wherever_they_stand() -> None:
    source = """
from a import told
@pytest.mark.parametrize("x, said", [])
def f(y, said=1, **told): return f"{told.said}", g(said=2)
class Told: pass
# told
"""
    found = [(line, name) for line, name in sorted(identifiers(source)) if name in IDENTIFIERS]
    assert found == [
        (2, "told"),
        (3, "said"),
        (4, "said"),
        (4, "said"),
        (4, "said"),
        (4, "told"),
        (4, "told"),
        (5, "Told"),
    ]


def test_an_identifier_of_the_old_dialect_is_not_written() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: `{name}`: write {IDENTIFIERS[name.lstrip('_')]}"
        for top in ("python", "tests", "benchmarks")
        for path in sorted((ROOT / top).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith("tests/fixtures")
        for line, name in identifiers(path.read_text())
        if name.lstrip("_") in IDENTIFIERS
    ]
    assert not found, "\n".join(found)
