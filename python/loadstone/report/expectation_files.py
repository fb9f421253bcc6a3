"""The files of a gate: JUnit XML for continuous integration, and a summary in Markdown for a pull request."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from loadstone.errors import LoadstoneError
from loadstone.format.wording import replace_controls
from loadstone.judge.judgement import Judgement
from loadstone.report import answer
from loadstone.report.expectations import count, describe
from loadstone.report.markdown import plain, tabulate_expectations
from loadstone.report.sections import headline
from loadstone.report.view import View

# The environment variable with the path of the file that GitHub Actions displays; other commands also write to this
# file.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def junit(judgement: Judgement) -> str:
    """JUnit XML with a test case for each expectation; an undecided expectation is an error, as it has not passed.

    The format is Apache Ant's, which Jenkins, GitLab and the reporters of GitHub read.
    """
    expectations, name = judgement.expectations, judgement.results.name or "loadstone"
    counts = Counter(expectation.answer for expectation in expectations)
    totals = {"tests": str(len(expectations)), "failures": str(counts["false"]), "errors": str(counts["undecided"])}
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": replace_controls(name), **totals, "skipped": "0"})
    for expectation in expectations:
        title = replace_controls(f"{expectation.text} {expectation.of}".strip())
        case = ElementTree.SubElement(suite, "testcase", {"classname": replace_controls(name), "name": title})
        if expectation.holds is not True:
            tag, kind = ("failure", "false") if expectation.holds is False else ("error", "undecided")
            child = ElementTree.SubElement(
                case, tag, {"type": kind, "message": replace_controls(describe(expectation))}
            )
            child.text = replace_controls(expectation.remedy)
        else:
            ElementTree.SubElement(case, "system-out").text = replace_controls(describe(expectation))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def summary(judgement: Judgement) -> str:
    """Markdown for a pull request: the expectations, the answer and the verdict."""
    view = View(judgement)
    parts = [
        f"### {plain(headline(view))}",
        *(
            [f"Expectations: {count(judgement.expectations)}.", tabulate_expectations(judgement.expectations)]
            if judgement.expectations
            else []
        ),
        f"**{plain(answer.sentence(view, with_figures=True))}**",
        *(["\n".join(f"- {plain(text)}" for text in judgement.further)] if judgement.further else []),
        f"Verdict: **{view.judgement.answer_verdict}**. {plain(answer.describe_verdict(view))}",
    ]
    return replace_controls("\n\n".join(parts) + "\n")


def write_files(judgement: Judgement, junit_path: Path | None, summary_path: Path | None) -> None:
    """Writes the JUnit XML, and writes the summary or appends it to GitHub's file. Raises LoadstoneError."""
    for path, text in ((junit_path, junit), (summary_path, summary)):
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                is_shared = path == summary_path and str(path) == os.environ.get(STEP_SUMMARY)
                with path.open("a" if is_shared else "w", encoding="utf-8") as file:
                    file.write(text(judgement))
            except OSError as error:
                raise LoadstoneError(f"cannot write {path}: {error.strerror}", "name another file") from error
