"""STYLE.md's words that are not written here do not come back."""

from __future__ import annotations

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
