"""The report for a pull request or a wiki: the answer, the tables, charts, warnings, and how to reproduce it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loadstone.format import units
from loadstone.format.wording import replace_controls
from loadstone.judge.judgement import Expectation
from loadstone.report import answer
from loadstone.report.charts.figure import Figure
from loadstone.report.expectations import describe_figure
from loadstone.report.sections import Section, describe_setting, gist, headline
from loadstone.report.table import Table, TableCell
from loadstone.report.view import View
from loadstone.report.warnings import Warnings, page_address

# Sections that are only on the page, since a pull request does not need them.
LEFT_OUT = frozenset({"environment", "trials"})
# Characters with a meaning in Markdown or HTML within a line.
SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def document(view: View, content: Sequence[Section]) -> str:
    """The complete text with these sections; its charts are in the folder `report` next to it."""
    parts = [
        f"# {plain(headline(view))}",
        f"**{plain(answer.sentence(view))}**",
        f"Verdict: **{view.standing}**. {answer.describe_verdict(view)}",
        *(render_table(figures) if (figures := answer.table(view)) else []),
        *(["\n".join(f"- {plain(text)}" for text in remarks)] if (remarks := answer.remarks(view)) else []),
        *([tabulate_expectations(view.judgement.expectations)] if view.judgement.expectations else []),
        *(["; ".join(described)] if (described := describe_setting(view)) else []),
        ", ".join(gist(view)),
    ]
    for section in content:
        if section.name not in LEFT_OUT:
            parts += [f"## {section.title}", *blocks(section)]
    return replace_controls("\n\n".join(parts) + "\n")


def tabulate_expectations(expectations: Sequence[Expectation]) -> str:
    """A table of expectations."""
    lines = ["| | expectation | of | figure | |", "|---|---|---|---|---|"]
    for item in expectations:
        why = "; ".join(part for part in (item.why, item.remedy) if part)
        cells = (f"**{item.answer}**", plain(item.text), plain(item.of), plain(describe_figure(item)), mark_code(why))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def blocks(section: Section) -> Iterator[str]:
    """A section's paragraphs, tables and charts."""
    yield from (plain(line) for line in section.lead)
    for table in section.tables:
        yield from render_table(table)
    for table in section.more:
        yield f"<details><summary>{section.folded}</summary>\n\n{chr(10).join(render_table(table))}\n\n</details>"
    for figure in section.figures:
        yield from embed_figure(figure)
    yield from (render_warnings(group) for group in section.warnings)
    if section.recipe:
        yield fence_code(section.recipe.command, "sh")
        if section.recipe.seed:
            yield f"Seed of keys, values and order: {plain(section.recipe.seed)}"
        if section.recipe.experiment:
            yield (
                "<details><summary>The resolved experiment file</summary>\n\n"
                f"{fence_code(section.recipe.experiment, 'yaml')}\n\n</details>"
            )


def render_table(table: Table) -> Iterator[str]:
    """A table; headings of row groups become rows in bold."""
    if table.title:
        yield f"### {plain(table.title)}"
    marks = ["---:" if column.align == "right" else "---" for column in table.columns]
    lines = [[plain(column.title) for column in table.columns], marks]
    for group in table.groups:
        if group.title:
            lines.append([f"**{plain(group.title)}**", *("" for _ in table.columns[1:])])
        lines.extend([cell(entry) for entry in row] for row in group.rows)
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if table.notes:
        yield plain(". ".join(table.notes) + ".")


def cell(entry: TableCell) -> str:
    """The content of a cell."""
    verdict = "" if entry.verdict is None else str(entry.verdict)
    text = " ".join(part for part in (verdict, plain(entry.text)) if part)
    note = f"({plain(entry.note)})" if entry.note and text else plain(entry.note)
    main = f"**{text}**" if entry.tone in ("better", "worse") and text else text
    return " ".join(part for part in (main, note) if part)


def embed_figure(figure: Figure) -> Iterator[str]:
    """A chart: SVG for viewers that support it, else PNG."""
    path = f"report/{figure.name}"
    alt_text = figure.alt.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
    source = f'<source type="image/svg+xml" srcset="{path}.svg">'
    yield f'<picture>{source}<img alt="{alt_text}" src="{path}.png"></picture>'
    yield plain(figure.caption)


def render_warnings(group: Warnings) -> str:
    """A check's findings as a list."""
    concerned = f", {units.count_noun(group.trials, 'trial')}" if group.trials else ""
    lines = [
        f"- **{group.label}: {plain(group.check)}**{concerned}{f' ({link_page(group.page)})' if group.page else ''}"
    ]
    for message, hint in zip(group.messages, group.hints, strict=True):
        lines.append(f"  - {mark_code(message)}")
        lines += [f"    - What to do: {mark_code(hint)}"] if hint else []
    if group.more:
        lines.append(f"  - and {units.count_noun(group.more, 'more message')} from this check")
    return "\n".join(lines)


def link_page(page: str) -> str:
    """A page of the docs, with a link if a site is configured."""
    address = page_address(page)
    return f"[`{page}`]({address})" if address else f"`{page}`"


def mark_code(text: str) -> str:
    """A sentence in which text in backticks becomes code."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(
        f"`{' '.join(part.split())}`" if number % 2 else separate_blocks(part) for number, part in enumerate(parts)
    )


def separate_blocks(text: str) -> str:
    """Applies `plain` to a part of a sentence, but keeps a space at its beginning or end."""
    before, after = text[:1].isspace(), text[-1:].isspace()
    return f"{' ' if before else ''}{plain(text)}{' ' if after and text.strip() else ''}"


def plain(text: str) -> str:
    """Text on one line, escaped so that it is neither Markdown nor HTML."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")


def fence_code(content: str, language: str) -> str:
    """A block of code, with a fence that is longer than any fence in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{content.rstrip()}\n{fence}"
