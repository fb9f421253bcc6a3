"""The parts of the page as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from loadstone.format import units, wording
from loadstone.judge.finding import Verdict
from loadstone.judge.judgement import Expectation
from loadstone.report import answer
from loadstone.report.charts.figure import Figure
from loadstone.report.expectations import describe_figure
from loadstone.report.markup import Markup, join_markup, tag
from loadstone.report.reproduce import Recipe
from loadstone.report.sections import Section, describe_setting, gist, headline
from loadstone.report.table import Table, TableCell
from loadstone.report.view import View
from loadstone.report.warnings import Warnings, page_address

# The maximum depth of a rendered environment, and the maximum number of entries in a list.
DEPTH_MAX = 6
ENTRIES_MAX = 200
# Parts of an environment that have more values than this are folded.
OPEN_MAX = 24
# The number of expectations on the first screen; false expectations come first.
EXPECTED_MAX = 4
ANSWERS = ("false", "undecided", "true")
UNIT = re.compile(r"(?<=\d) (?=%|(?:op/s|clients|[kMGT]?B|ns|µs|ms|s)\b)")
# If the answer's table has more rows than this, it follows the chart.
ROWS_BEFORE_CHART = 4
# The name of a check after an opening bracket, alone or first in a list.
CAUSE = re.compile(r"(?<=\()([a-z]+(?:-[a-z]+)*)(?=[,)])")
CHECK = re.compile(r"[a-z]+(?:-[a-z]+)*")
# Parts of the environment that other sections show.
ELSEWHERE = frozenset({"command", "environment", "started"})
# The shapes of theme.SHAPES, as paths in a square from -1 to 1.
MARKS = (
    "M0,-.95A.95,.95 0 1 1 0,.95A.95,.95 0 1 1 0,-.95Z",
    "M-.85,-.85H.85V.85H-.85Z",
    "M0,-.95L1,.8H-1Z",
    "M0,-1.1L.9,0L0,1.1L-.9,0Z",
    "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "M0,.95L1,-.8H-1Z",
    "M.95,0L-.8,1V-1Z",
    "M-.95,0L.8,1V-1Z",
)


def header(view: View, first: Figure | None) -> Markup:
    """The question, the answer with its verdict, the deciding chart, and a summary of the trials."""
    results, remarks = view.results, answer.remarks(view)
    started = min((trial.start_unix_ns for trial in results.trials if trial.start_unix_ns), default=None)
    day = None if started is None else datetime.fromtimestamp(started / 1e9, UTC).strftime("%-d %B %Y, %H:%M UTC")
    over = [part for part in ("Loadstone report", results.name, day) if part]
    decisive = answer.table(view)
    figures = [tag("div", table(decisive), class_="figures")] if decisive else []
    # Curves explain a sweep or search best, and below a long table, readers would not see the chart.
    rows = sum(len(group.rows) for group in decisive.groups) if decisive else 0
    has_chart_first = bool(view.judgement.searches or view.judgement.curves) or rows > ROWS_BEFORE_CHART
    return tag(
        "header",
        tag("p", *wrap_items(over), class_="over"),
        tag("h1", *mark_code(headline(view))),
        *([tag("p", *wrap_items(described), class_="setting")] if (described := describe_setting(view)) else []),
        tag(
            "div",
            tag("p", *link_causes(view, answer.sentence(view)), class_="answer"),
            tag("p", badge(view.standing), " ", *stand(view), class_="stand"),
            class_=f"verdict {view.verdict}",
        ),
        *([] if has_chart_first else figures),
        *([tag("ul", *(tag("li", *link_causes(view, text)) for text in remarks), class_="further")] if remarks else []),
        *([list_expectations(view.judgement.expectations)] if view.judgement.expectations else []),
        *([figure(first)] if first else []),
        *(figures if has_chart_first else []),
        tag("p", *wrap_items(gist(view)), class_="gist"),
    )


def list_expectations(expectations: Sequence[Expectation]) -> Markup:
    """The list of expectations, each with its answer."""
    rows = []
    for expectation in sorted(expectations, key=lambda item: ANSWERS.index(item.answer)):
        facts = "; ".join(part for part in (describe_figure(expectation), expectation.why, expectation.remedy) if part)
        of = [" ", tag("small", expectation.of)] if expectation.of else []
        rows.append(
            tag(
                "li",
                tag("span", expectation.answer, class_=f"badge {expectation.answer}"),
                " ",
                tag("b", expectation.text),
                *of,
                " ",
                tag("span", keep_units(facts)),
            )
        )
    first, more = rows[:EXPECTED_MAX], rows[EXPECTED_MAX:]
    folded = [tag("details", tag("summary", f"{len(more)} more expectations"), tag("ul", *more, class_="expected"))]
    return join_markup(tag("ul", *first, class_="expected"), *(folded if more else []))


def stand(view: View) -> list[str]:
    """The sentences on the verdict, with a link to the warnings."""
    before, link, after = answer.describe_verdict(view).partition("the warnings")
    return [*link_causes(view, before), *([tag("a", link, href="#warnings"), after] if link else [])]


def link_causes(view: View, text: str) -> list[str]:
    """Text in which each check in brackets, such as `(not-steady)`, is a link to its findings on the page."""
    places = {group.check: f"#{anchor(group.check)}-{group.label}" for group in reversed(view.warnings)}
    parts: list[str] = []
    for number, part in enumerate(CAUSE.split(keep_units(text))):
        parts += ["check ", tag("a", part, href=places[part])] if number % 2 and part in places else [part]
    return parts


def keep_units(text: str) -> str:
    """Text that does not break between numbers and units."""
    return UNIT.sub("\N{NO-BREAK SPACE}", text)


def wrap_items(items: Sequence[str]) -> list[Markup]:
    """Items that the style sheet separates by dots and keeps on one line each."""
    return [tag("span", item) for item in items]


def contents(sections: Sequence[Section]) -> Markup:
    """The navigation: links to the sections."""
    return tag(
        "nav", *(tag("a", section.title, href=f"#{section.name}") for section in sections), aria_label="Sections"
    )


def section(view: View, part: Section) -> Markup:
    """A section; some of its tables may be folded."""
    tables = join_markup(*(table(content) for content in part.tables))
    if part.more:
        tables = join_markup(tables, tag("details", tag("summary", part.folded), *(table(more) for more in part.more)))
    return tag(
        "section",
        tag("h2", part.title),
        *(tag("p", *mark_code(line), class_="lead") for line in part.lead),
        *([tag("div", *(render_warnings(item) for item in part.warnings), class_="warnings")] if part.warnings else []),
        tables,
        *(figure(item) for item in part.figures),
        *([environment(view.results.environment)] if part.environment else []),
        *([recipe(part.recipe)] if part.recipe else []),
        id=part.name,
    )


def badge(verdict: str) -> Markup:
    """A verdict as a badge."""
    return tag("span", verdict, class_=f"badge {verdict.replace(' ', '-')}")


def table(content: Table) -> Markup:
    """A table; on a phone, each row becomes a card whose cells have the column titles as labels."""
    heads = [
        tag(
            "th",
            column.title,
            scope="col",
            class_=column.align,
            style=f"width:{column.width}%" if column.width else None,
        )
        for column in content.columns
    ]
    bodies = []
    for group in content.groups:
        rows = [row(content, entries) for entries in group.rows]
        if group.title:
            title = tag("th", group.title, colspan=str(len(content.columns)), scope="rowgroup")
            rows.insert(0, tag("tr", title, class_="group"))
        bodies.append(tag("tbody", *rows))
    return join_markup(
        tag("h3", content.title) if content.title else "",
        tag("div", tag("table", tag("thead", tag("tr", *heads)), *bodies), class_="table"),
        *([tag("p", ". ".join(content.notes) + ".", class_="notes")] if content.notes else []),
    )


def row(of_table: Table, entries: Sequence[TableCell]) -> Markup:
    """A row of a table; its first cell is its heading."""
    cells = []
    for number, (column, entry) in enumerate(zip(of_table.columns, entries, strict=True)):
        name = "td" if number else "th"
        empty = not (entry.text or entry.note or entry.verdict is not None)
        classes = " ".join(part for part in (column.align, entry.tone, "empty" if empty else "") if part)
        label = column.title if number else None
        scope = None if number else "row"
        cell = tag("div", content(entry), title=entry.aside or None)
        cells.append(tag(name, cell, class_=classes, data_label=label, scope=scope))
    return tag("tr", *cells)


def content(entry: TableCell) -> Markup:
    """The content of a cell."""
    verdict = "" if entry.verdict is None else badge(str(entry.verdict))
    text = tag("span", entry.text, class_="text") if entry.text else ""
    note = tag("small", *link_checks(entry)) if entry.note else ""
    return Markup(" ".join(part for part in (verdict, text, note) if part))


def link_checks(entry: TableCell) -> list[str]:
    """The note of a cell; the checks behind a verdict become links to their findings."""
    if entry.verdict is None or entry.verdict is Verdict.VALID:
        return [entry.note]
    parts: list[str] = []
    for check in entry.note.split(", "):
        parts += [", "] if parts else []
        is_check = CHECK.fullmatch(check)
        parts.append(tag("a", check, href=f"#{anchor(check)}-{entry.verdict}") if is_check else check)
    return parts


def figure(chart: Figure) -> Markup:
    """A figure: its legend, its panels and its caption."""
    panels = [
        tag(
            "div",
            tag("h4", panel.title) if panel.title else "",
            tag("div", class_="chart", data_chart=f"{chart.name}-{number}", style=f"min-height:{panel.height + 40}px"),
            class_="panel",
        )
        for number, panel in enumerate(chart.panels)
    ]
    return tag(
        "figure",
        *([tag("h3", chart.title)] if chart.title else []),
        *([legend(chart)] if chart.legend or chart.signs else []),
        tag("div", *panels, class_=f"panels by-{chart.columns}", role="img", aria_label=chart.alt),
        tag("figcaption", chart.caption),
    )


def legend(chart: Figure) -> Markup:
    """Names with their colours and marks, and the signs that all series share."""
    names = [tag("li", swatch(number), name) for name, number in chart.legend]
    signs = [tag("li", tag("b", sign), f" {meaning}", class_="sign") for sign, meaning in chart.signs]
    return tag("ul", *names, *signs, class_="legend")


def swatch(number: int) -> Markup:
    """The mark of a series."""
    path = tag("path", d=MARKS[number % len(MARKS)], fill=f"var(--series-{number + 1})")
    return tag("svg", path, viewBox="-1.2 -1.2 2.4 2.4", width="12", height="12", aria_hidden="true")


def render_warnings(group: Warnings) -> Markup:
    """The findings of a check."""
    concerned = units.count_noun(group.trials, "trial") if group.trials else "the whole result set"
    messages = []
    for message, hint in zip(group.messages, group.hints, strict=True):
        advice = tag("p", tag("b", "What to do: "), *mark_code(hint), class_="hint") if hint else ""
        messages.append(tag("li", *mark_code(message), advice))
    if group.more:
        messages.append(tag("li", f"and {units.count_noun(group.more, 'more message')} from this check", class_="more"))
    return tag(
        "article",
        tag(
            "h3",
            tag("span", group.label, class_=f"badge {group.label}"),
            tag("span", group.check, class_="check"),
            tag("small", concerned),
        ),
        tag("ul", *messages),
        tag("p", "Formula, threshold and reason: ", link_page(group.page), class_="page") if group.page else "",
        class_=f"warning {group.label}",
        id=f"{anchor(group.check)}-{group.label}",
    )


def link_page(page: str) -> Markup:
    """A page of the docs, with a link if a site is configured."""
    address = page_address(page)
    return tag("a", tag("code", page), href=address) if address else tag("code", page)


def anchor(check: str) -> str:
    """The id prefix for a check's findings on the page."""
    return f"check-{re.sub(r'[^a-z0-9]+', '-', check.lower()).strip('-')}"


def mark_code(text: str) -> list[str]:
    """A sentence in which text in backticks becomes code."""
    parts = re.split(r"`([^`]+)`", text)
    return [tag("code", part) if number % 2 else part for number, part in enumerate(parts)]


def environment(recorded: Mapping[str, Any]) -> Markup:
    """The recorded environment: hosts, versions and limits."""
    facts = {name: value for name, value in recorded.items() if name not in ELSEWHERE and value not in (None, "")}
    plain = {name: value for name, value in facts.items() if not isinstance(value, Mapping | list | tuple)}
    nested = {name: value for name, value in facts.items() if name not in plain}
    return join_markup(
        definitions(plain, 0) if plain else "",
        *(
            tag(
                "details",
                tag("summary", wording.fact_name(name)),
                definitions(value, 0),
                open=leaves(value) <= OPEN_MAX,
            )
            for name, value in list(nested.items())[:ENTRIES_MAX]
            if value
        ),
    )


def leaves(value: Any) -> int:
    """The number of leaves in a nested value."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return sum(map(leaves, inner)) if inner else 1


def definitions(value: Any, depth: int) -> Markup:
    """A nested value as definition lists."""
    if isinstance(value, list | tuple) and len(value) == 1:
        return definitions(value[0], depth)
    if isinstance(value, list | tuple) and any(isinstance(entry, Mapping | list | tuple) for entry in value):
        value = {str(number): entry for number, entry in enumerate(value, start=1)}
    if isinstance(value, list | tuple):
        return join_markup(", ".join(str(entry) for entry in value[:ENTRIES_MAX]) or wording.DASH)
    if not isinstance(value, Mapping) or depth >= DEPTH_MAX:
        return join_markup(wording.DASH if value is None or value == "" else str(value))
    pairs = []
    for name, entry in list(value.items())[:ENTRIES_MAX]:
        definition = (
            wording.fact_value(str(name), entry)
            if isinstance(entry, str | int | float)
            else definitions(entry, depth + 1)
        )
        wide = "wide" if isinstance(definition, Markup) and definition.startswith("<dl") else None
        pairs.append(tag("div", tag("dt", wording.fact_name(str(name))), tag("dd", definition), class_=wide))
    return tag("dl", *pairs)


def recipe(content: Recipe) -> Markup:
    """The command, the seed and the experiment file."""
    return join_markup(
        tag("pre", tag("code", content.command), class_="command"),
        tag("p", "Seed of keys, values and order: ", tag("code", content.seed)) if content.seed else "",
        tag("details", tag("summary", "The resolved experiment file"), tag("pre", tag("code", content.experiment)))
        if content.experiment
        else "",
    )
