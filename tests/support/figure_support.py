"""Every figure of a rendered report with its places: tables of the page and of Markdown, charts, the terminal."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

from loadstone.commands.show_results import judgement_document
from loadstone.format import units, wording
from loadstone.judge.figures import target_rate
from loadstone.judge.judgement import Judgement
from loadstone.report import faults, html, markdown, search, stages, sweep, trials
from loadstone.report.sections import sections
from loadstone.report.terminal import tables
from loadstone.report.view import View
from loadstone.results import export
from loadstone.search.sentence import knee_text

SCALES = {name: factor for scale in (units.DURATIONS, units.SIZES) for factor, name in scale}
SCALES |= {f"{name}{per}": factor for factor, name in units.SIZES for per in ("/s", "/op")}
TIMES = {name for _, name in units.DURATIONS}
NUMBER = re.compile(r"^(?P<bound>at (?:least|most) )?(?P<number>-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?) ?(?P<unit>.*)$")
# A cell that begins with one of these words contains no figure.
PLACEHOLDERS = ("withheld", "failed", "unanswered", "no device", "over the network", "not measured", "none", "unknown")
# The loads and throughputs in the sentence on a knee.
KNEE_FIGURES = (
    re.compile(r"is highest at (?P<load>[\d,.]+) clients?, (?P<figure>[\d,.]+ op/s)"),
    re.compile(r"to (?P<figure>[\d,.]+ op/s) at (?P<load>[\d,.]+) clients?"),
    re.compile(r"still rises at (?P<load>[\d,.]+) clients? \((?P<figure>[\d,.]+ op/s) there\)"),
)
# A variant's tokens and a metric's text.
Key = tuple[frozenset[str], str]
LOAD_METRICS = {head: metric for metric, head in sweep.COLUMNS.items()}
STAGE_METRICS = {head: wording.metric_name(metric) for metric, head in stages.COLUMNS.items()}
SECTIONS = {"Figures": "comparison", "By load": "loads", "By stage": "stages", "Host activity": "host"}
BOUND_TEXTS = {
    "at_least": "at least ",
    "at_most": "at most ",
    "failed": "failed ",
    "unanswered": "unanswered ",
}
CHARTS = {"throughput": "throughput", "scaling": "", "headline": "", "device": "", "percentiles": "", "opening": ""}
# A ratio as a factor or as a percentage, and the interval of a ratio, alone in a cell or in brackets.
RATIO = re.compile(r"(?P<number>\d[\d,.]*(?:e[+-]?\d+)?)(?P<unit>×| % lower)")
RATIO_INTERVAL = re.compile(r"(?:^|\()(?P<low>[\d.,]+) ?– ?(?P<high>[\d.,]+)(?P<unit> %|×)?(?:$|\)|, )")
# A figure with a unit in a sentence.
IN_PROSE = re.compile(r"(?<![\w.,])(?:at (?:least|most) )?\d[\d,.]*\d? (?:op/s|[nµm]?s|[kMGT]?B(?:/s|/op)?)(?![\w/])")

# A part of a whole: `3 of 12 trials`.
PART = re.compile(
    r"(?<![\d.,])(?P<part>\d[\d,]*) of (?P<whole>\d[\d,]*) (?:valid )?(?:trials|repeats|variants|checks|loads)"
)


@dataclass(frozen=True)
class Place:
    """The place of a figure, and its text."""

    where: str
    text: str


@dataclass
class HtmlTable:
    """One table of the page: its section, title, column heads and rows of cells."""

    section: str
    title: str
    heads: list[str] = field(default_factory=list)
    # For each row: the title of its group, the text of each cell, and the small note in each cell.
    rows: list[tuple[str, list[str], list[str]]] = field(default_factory=list)


class TableReader(HTMLParser):
    """Reads the tables and the charts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[HtmlTable] = []
        self.charts: dict[str, Any] = {}
        self.titles: dict[str, str] = {}
        self._section = self._title = self._text = self._heading = self._group = ""
        self._cell: str | None = None
        self._note = ""
        self._in_head = self._in_note = self._in_data = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        match tag:
            case "section":
                self._section, self._title = known.get("id") or "", ""
            case "h3" | "h4":
                self._heading, self._text = tag, ""
            case "table":
                self.tables.append(HtmlTable(self._section, self._title))
                self._group = ""
            case "thead":
                self._in_head = True
            case "tr" if self.tables and not self._in_head and known.get("class") != "group":
                self.tables[-1].rows.append((self._group, [], []))
            case "th" | "td":
                self._cell = self._note = ""
                self._is_group = known.get("scope") == "rowgroup"
            case "small":
                self._in_note = True
            case "script":
                self._in_data, self._text = known.get("id") == "charts", ""
            case "div" if "data-chart" in known:
                self.titles[str(known["data-chart"])] = self._text if self._heading == "h4" else ""
                self._heading = ""

    def handle_data(self, data: str) -> None:
        if self._cell is not None and not self._in_note:
            self._cell += data
        elif self._cell is not None:
            self._note += data
        elif self._heading or self._in_data:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "h3":
                self._title, self._heading = self._text, ""
            case "thead":
                self._in_head = False
            case "small":
                self._in_note = False
            case "script" if self._in_data:
                self.charts, self._in_data = json.loads(self._text)["charts"], False
            case "th" | "td" if self._cell is not None:
                text, self._cell = " ".join(self._cell.split()), None
                if self._is_group:
                    self._group = text
                elif self._in_head:
                    self.tables[-1].heads.append(text)
                else:
                    self.tables[-1].rows[-1][1].append(text)
                    self.tables[-1].rows[-1][2].append(" ".join(self._note.split()))


def find_conflicts(judgement: Judgement) -> list[str]:
    """Figures that a rendered report shows with more than one value, and parts that exceed the whole, one line each."""
    view = View(judgement)
    parts = PART.finditer(markdown.document(view, sections(view)))
    lines = [match[0] for match in parts if number_of(match["part"]) > number_of(match["whole"])]
    for (variant, metric), places in collect_figures(judgement).items():
        for first, second in combinations(places, 2):
            if not agree(first.text, second.text):
                name = " ".join(sorted(variant))
                lines.append(f"{metric} of {name}: {first.text} in {first.where}, {second.text} in {second.where}")
    return lines


def number_of(text: str) -> int:
    return int(text.replace(",", ""))


def count_repeated(judgement: Judgement) -> int:
    """The number of figures that occur in more than one place."""
    return sum(len({place.where for place in places}) > 1 for places in collect_figures(judgement).values())


def collect_figures(judgement: Judgement) -> dict[Key, list[Place]]:
    """All figures by variant and metric."""
    view = View(judgement)
    every = sections(view)
    reader = TableReader()
    reader.feed(html.document(view, every))
    figures: dict[Key, list[Place]] = {}
    for label, metric, place in (
        *page_figures(reader, view),
        *markdown_figures(markdown.document(view, every)),
        *terminal_figures(judgement),
        *read_export(judgement),
        *json_figures(judgement),
        *ratio_figures(judgement),
        *sentence_figures(judgement),
    ):
        tokens = name_tokens(label, judgement)
        figures.setdefault((tokens, metric_words(metric)), []).append(place)
    return figures


def page_figures(reader: TableReader, view: View) -> Iterator[tuple[str, str, Place]]:
    """The figures of the page's tables and charts."""
    for table in reader.tables:
        for group, cells, notes in table.rows:
            row = dict(zip(table.heads, cells, strict=True))
            yield from row_figures(table.section, table.title, group, row, cells[0], "page")
            noted = dict(zip(table.heads, notes, strict=True))
            if not table.section:
                yield from answer_figures(group, row, noted)
            elif table.section == "comparison":
                against = next((head for head in table.heads if head.startswith("against ")), "")
                if row.get(against, "baseline") != "baseline":
                    yield from change_figures(
                        f"{cells[0]} {group}", table.title, row[against], noted[against], f"page's table {table.title}"
                    )
    for name, spec in reader.charts.items():
        # The chart of the first screen repeats one of these charts.
        chart = re.sub(r"-\d+$", "", name)
        data = [row for rows in spec.get("datasets", {}).values() for row in rows]
        for row in data:
            if chart in CHARTS and "figure" in row and "repeat" not in row and row.get("value", 1) is not None:
                title = reader.titles[name]
                operation, _, context = title.partition(" · ")
                operation = operation.removesuffix(", op/s")
                if chart == "opening" and operation.partition(" ")[0] in view.results.dimensions:
                    operation, context = "throughput", title
                metric = CHARTS[chart] or str(row.get("metric", operation))
                if chart == "percentiles":
                    metric = f"{operation} p{str(row['percentile']).removesuffix(' %')}"
                context = title if CHARTS[chart] else context
                label = f"{row.get('full', row.get('name', ''))} {context}"
                if "load" in row:
                    own = "" if view.dimension in (None, view.load) else row["full"]
                    names = [name for name in view.results.dimensions if name not in (view.load, view.dimension)]
                    if view.dimension is None:
                        context = " ".join(part for part in row["full"].split(", ") if part.partition("=")[0] in names)
                    label = f"{own} {context} {view.load}={row['load']:g}"
                yield label, metric, Place(f"chart {name}", str(row["figure"]))
                if " – " in (interval := str(row.get("interval", ""))):
                    yield label, f"{metric} interval", Place(f"chart {name}", interval)


def row_figures(
    section: str, title: str, group: str, row: Mapping[str, str], name: str, where: str
) -> Iterator[tuple[str, str, Place]]:
    """The figures of a row."""
    place = f"{where}'s table {title or section}"
    if section == "comparison" and "metric" in row:
        # The table of a single variant has a row for each metric.
        yield group, name, Place(place, row.get("median", row.get("figure", "")))
        if row.get("interval", "none") != "none":
            yield group, f"{name} interval", Place(place, row["interval"])
    elif section == "comparison" and "median" in row:
        yield f"{name} {group}", title, Place(place, row["median"])
        if row["interval"] not in ("", "none"):
            yield f"{name} {group}", f"{title} interval", Place(place, row["interval"])
    elif section == "search":
        over = next(iter(row))
        for head, text in row.items():
            if head not in (over, "trials", "decision"):
                yield f"{title} {over}={name.replace(',', '')}", head, Place(place, text)
    elif section == "servers" and "variant" in row:
        for head, text in row.items():
            yield name, head, Place(place, text)
    elif section == "loads":
        load, *_ = row
        for head, text in row.items():
            if head != load:
                yield f"{group} {load.strip('# ')}={name}", LOAD_METRICS[head], Place(place, text)
    elif section == "stages":
        for head, text in row.items():
            if head not in ("stage", "rate", "length", "steady"):
                yield group.replace(", ", " "), f"stage {name} {STAGE_METRICS[head]}", Place(place, text)
    elif section == "trials" and group != trials.PILOT_TITLE:
        for head, text in row.items():
            if head not in ("trial", "repeat", "end", "verdict"):
                yield f"trial={name}", head, Place(place, text)
    elif section == "host":
        for head, text in row.items():
            if head:
                yield head, name, Place(place, text)


def answer_figures(group: str, row: Mapping[str, str], notes: Mapping[str, str]) -> Iterator[tuple[str, str, Place]]:
    """The figures in a row of the answer's table: medians and ratios of compared sides, or a load of a search."""
    (first, name), *cells = row.items()
    place = "the answer's table"
    if first != "metric":
        label = f"system={group}" if group and "=" not in group else group
        load = name.partition(" ")[0].replace(",", "")
        for head, text in cells:
            if head != "objective":
                yield f"{label} {first}={load}", head, Place(place, text)
        return
    metric, _, context = name.partition(" · ")
    sides = [head for head, _ in cells if " against " not in head and head not in ("conclusion", "verdict")]
    for side in sides:
        # A row that joins several contexts shows a range over them.
        if " to " not in row[side]:
            yield f"{side} {group} {context}", metric, Place(place, row[side])
    for head, text in cells:
        if " against " in head:
            yield from change_figures(f"{sides[1]} {group} {context}", metric, text, notes[head], place)
    if len(sides) > 2:
        for side in sides[1:]:
            yield from change_figures(f"{side} {group} {context}", metric, "", notes[side], place)


def change_figures(label: str, metric: str, text: str, note: str, place: str) -> Iterator[tuple[str, str, Place]]:
    """A ratio and its interval, from the text and the note of a cell; nothing for the range of several ratios."""
    if "intervals within" in note:
        return
    every = f"{text} {note}"
    # Intervals are removed first, because their bounds may have a ratio's unit.
    if match := RATIO.search(RATIO_INTERVAL.sub(" ", text) + " " + RATIO_INTERVAL.sub(" ", note)):
        yield label, f"{metric} ratio", Place(place, read_ratio(match["number"], match["unit"]))
    if "as measured" not in every and (match := RATIO_INTERVAL.search(note) or RATIO_INTERVAL.search(text)):
        ends = (match["low"], match["high"])
        if match["unit"] == " %":
            ends = (match["high"], match["low"])
        for name, end in zip(("low", "high"), ends, strict=True):
            unit = " % lower" if match["unit"] == " %" else "×"
            yield label, f"{metric} ratio {name}", Place(place, read_ratio(end, unit))


def read_ratio(number: str, unit: str) -> str:
    """A ratio as a number: `43 % lower` is 0.57×."""
    if unit == "×":
        return f"{number}×"
    decimals = len(number.partition(".")[2]) + 2
    return f"{1 - float(number) / 100:.{decimals}f}×"


def ratio_figures(judgement: Judgement) -> Iterator[tuple[str, str, Place]]:
    """The ratios of the terminal's tables and of the JSON output."""
    for pair, item in zip(judgement.comparisons, judgement_document(judgement)["comparisons"], strict=True):
        label = " ".join(f"{name}={value}" for name, value in pair.contender.variant)
        if pair.claim not in ("none", "refused", "unranked", "impossible"):
            text = tables.change(pair).plain.partition(" p")[0].removesuffix(f" {pair.n_text}")
            yield from change_figures(label, pair.metric, text, "", "terminal's table")
        if pair.claim in ("refused", "unranked"):
            continue
        for name, metric in (("ratio", "ratio"), ("low", "ratio low"), ("high", "ratio high")):
            if item[name] is not None and math.isfinite(item[name]):
                yield label, f"{pair.metric} {metric}", Place("the JSON output", f"{item[name]:.9f}×")


def find_unsupported(judgement: Judgement) -> list[str]:
    """Figures with a unit that the answer states but no table or chart shows."""
    places = [place.text for every in collect_figures(judgement).values() for place in every]
    known = [text for text in places if " – " not in text]
    for text in places:
        low, dash, high = text.partition(" – ")
        if dash:
            known += [high, low if " " in low else f"{low} {high.rpartition(' ')[2]}"]
    known += [units.format_figure(curve.knee.plateau, "op/s") for curve in judgement.curves]
    known += [units.format_rate(rate) for trial in judgement.results.trials if (rate := target_rate(trial))]
    known += [
        units.format_figure(term.bound, "ns")
        for search in judgement.searches
        if search.rule.objective
        for term in search.rule.objective.terms
    ]
    cells = [
        cell for table in faults.tables(View(judgement)) for group in table.groups for row in group.rows for cell in row
    ]
    known += [match[0] for cell in cells for match in IN_PROSE.finditer(f"{cell.text} {cell.note} {cell.aside}")]
    sentences = [judgement.answer, judgement.short.statement if judgement.short else ""]
    figures = [match[0] for sentence in sentences for match in IN_PROSE.finditer(sentence)]
    return [figure for figure in figures if not any(is_equal(figure, text) for text in known)]


def is_equal(first: str, second: str) -> bool:
    """Whether both texts are figures and agree."""
    return parse_figure(first) is not None and parse_figure(second) is not None and agree(first, second)


def markdown_figures(text: str) -> Iterator[tuple[str, str, Place]]:
    """The figures of Markdown's tables."""
    section, title, group = "", "", ""
    heads: list[str] = []
    for line in text.splitlines():
        plain = re.sub(r"\\(.)", r"\1", line)
        if line.startswith("## "):
            section = SECTIONS.get(plain[3:], plain[3:].lower())
            title, heads = "", []
        elif line.startswith("### "):
            title, heads = plain[4:], []
        elif line.startswith("| "):
            cells = [cell.strip() for cell in plain.strip("|").split(" | ")]
            if not heads:
                heads, group = cells, ""
            elif cells[0].startswith("**") and not any(cells[1:]):
                group = cells[0].strip("*")
            elif not set(cells[0]) <= {"-", ":"} and len(cells) == len(heads):
                row = {head: re.sub(r" ?\(.*\)$", "", cell) for head, cell in zip(heads, cells, strict=True)}
                yield from row_figures(section, title, group, row, cells[0], "Markdown")


def terminal_figures(judgement: Judgement) -> Iterator[tuple[str, str, Place]]:
    """The figures of the terminal's tables."""
    for result in judgement.searches:
        for row in search.rows(result):
            for head, text in zip(search.heads(result), row, strict=True):
                if head not in (result.rule.over, "trials", search.DECISION):
                    label = " ".join(f"{name}={value}" for name, value in result.context)
                    yield (
                        f"{label} {result.rule.over}={row[0].replace(',', '')}",
                        head,
                        Place("terminal's search", text),
                    )
    for metric in () if judgement.searches else judgement.results.headline_metrics:
        cells = [cell for (_, name), cell in judgement.cells.items() if name == metric]
        for variant, text in tables.figures(judgement, cells).items():
            label = " ".join(f"{name}={value}" for name, value in variant)
            yield label, metric, Place("terminal's table", re.sub(r" ?[±(].*$", "", text))


def read_export(judgement: Judgement) -> Iterator[tuple[str, str, Place]]:
    """The figures of trials in the CSV export, if the trials are few enough for the page to show them."""
    if len(judgement.results.trials) > trials.ROWS_MAX:
        return
    metrics = trials.columns(View(judgement))
    file = io.StringIO()
    export.write_csv(judgement.results, file)
    file.seek(0)
    for row in csv.DictReader(file):
        if row["metric"] in metrics:
            number, unit = float(row["value"]), row["unit"]
            bound = BOUND_TEXTS.get(row["bound"], "")
            yield f"trial={row['trial']}", row["metric"], Place("the CSV export", f"{bound}{number:.9f} {unit}")


def json_figures(judgement: Judgement) -> Iterator[tuple[str, str, Place]]:
    """The figures of `loadstone show --json`, except for a search."""
    for cell in () if judgement.searches else judgement_document(judgement)["cells"]:
        if cell["withheld"] or not math.isfinite(cell["value"]):
            continue
        bound = BOUND_TEXTS.get(cell["bound"] or "", "")
        label = " ".join(f"{name}={value}" for name, value in cell["variant"].items())
        yield label, cell["metric"], Place("the JSON output", f"{bound}{cell['value']:.9f} {cell['unit']}")


def sentence_figures(judgement: Judgement) -> Iterator[tuple[str, str, Place]]:
    """The throughputs at single loads that the sentences on knees name."""
    for curve in judgement.curves:
        context = " ".join(f"{name}={value}" for name, value in curve.context)
        for pattern in KNEE_FIGURES:
            for match in pattern.finditer(knee_text(curve.knee)):
                load = match["load"].replace(",", "")
                yield f"{context} clients={load}", "throughput", Place("the answer", match["figure"])


def name_tokens(label: str, judgement: Judgement) -> frozenset[str]:
    """A variant's values as `name=value`, without values that all variants share."""
    if label.startswith("trial="):
        return frozenset({label})
    tokens = set()
    for name, values in judgement.results.dimensions.items():
        pattern = re.compile(rf"(?<![\w=]){re.escape(name)}[ =](\S+)")
        if match := pattern.search(label):
            label = pattern.sub("", label)
            if len(values) > 1:
                tokens.add(f"{name}={match[1]}")
    # A value without a name belongs to the compared dimension.
    rest = re.sub(r"(?<=\d),(?=\d{3})", "", " ".join(label.replace("·", " ").split()))
    by = View(judgement).dimension
    if rest and not (by and len(judgement.results.dimensions[by]) == 1):
        tokens.add(f"{by}={rest}" if by else rest)
    return frozenset(tokens)


def metric_words(metric: str) -> str:
    """A metric's text in the report."""
    text = re.sub(r"^stage(\d+)\.", r"stage \1 ", metric)
    text = re.sub(r"\.(?!\d)", " ", text).replace("_", " ").replace(" all ", " ")
    return text.removeprefix("all ").removeprefix("device ")


def agree(first: str, second: str) -> bool:
    """Whether two texts can show the same figure: equal within the rounding of their last digits."""
    texts = [text.strip() for text in (first, second)]
    if any(text.startswith(PLACEHOLDERS) or text in ("", "–") for text in texts) or texts[0] == texts[1]:
        return True
    values = [parse_figure(text.removesuffix(", invalid")) for text in texts]
    if any(value is None for value in values):
        return False
    bounds = [match["bound"] for text in texts if (match := NUMBER.match(text))]
    if bounds[0] != bounds[1]:
        return False
    (left, left_half, left_unit), (right, right_half, right_unit) = (value for value in values if value is not None)
    units_agree = left_unit == right_unit or not left_unit or not right_unit
    return units_agree and abs(left - right) <= (left_half + right_half) * 1.001


def parse_figure(text: str) -> tuple[float, float, str] | None:
    """A figure in its base unit, half a unit of its last digit, and the type of its unit."""
    match = NUMBER.match(text)
    if match is None:
        return None
    number = match["number"].replace(",", "")
    unit = match["unit"].strip()
    scale = SCALES.get(unit, 0.01 if unit == "%" else 1.0)
    exact = number.partition("e")[0]
    whole, _, decimals = exact.partition(".")
    # Trailing zeros of a whole number may be rounded digits.
    zeros = len(whole) - len(whole.rstrip("0")) if not decimals else -len(decimals)
    half = 0.5 * 10.0 ** min(zeros, max(len(whole.strip("-")) - 3, 0) if not decimals else zeros)
    kind = {"s": "time", "ms": "time", "µs": "time", "ns": "time"}.get(
        unit, unit.lstrip("kMGT") if unit in SCALES else unit
    )
    return float(number) * scale, half * scale if math.isfinite(half) else 0.0, kind
