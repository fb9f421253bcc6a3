"""A judgement as tables on a terminal, in the style of benchstat: medians, intervals, and `~` without evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.format import units, wording
from loadstone.judge.decision_table import excludes_one
from loadstone.judge.finding import Severity
from loadstone.judge.judgement import Cell, Comparison, Judgement, Search, VariantKey
from loadstone.report import faults, scenarios, search, stages
from loadstone.report.answer import describe_verdict
from loadstone.report.expectations import SIGNS, describe
from loadstone.report.server_tables import tabulate_variants
from loadstone.report.table import Column, TableCell
from loadstone.report.table import Table as Content
from loadstone.report.terminal.curve import plot_percentiles
from loadstone.report.view import View
from loadstone.report.warnings import list_unavailable_checks, page_address, warnings
from loadstone.results.projection import Projected
from loadstone.results.result_set import natural_key, variant_name
from loadstone.results.trial_result import Scalar
from loadstone.results.value import THROUGHPUT

STYLES = {
    Severity.INVALID: "bold red",
    Severity.SUSPECT: "yellow",
    Severity.UNCHECKED: "magenta",
    Severity.WITHHELD: "cyan",
    Severity.NOTE: "dim",
}
# The width of server names on a terminal that is too narrow for long names on one line.
NAMES_WIDTH = 36


def show(console: Console, judgement: Judgement, projected: Projected) -> None:
    """Prints the answer, a table for each metric, and the findings; then repeats the answer if it has scrolled away."""
    if not console.is_terminal:
        show_parts(console, judgement, projected)
        return
    with console.capture() as captured:
        show_parts(console, judgement, projected)
    text = captured.get()
    console.file.write(text)
    if judgement.answer and text.count("\n") > console.height:
        console.print(Text(judgement.answer, style="bold"))


def show_parts(console: Console, judgement: Judgement, projected: Projected) -> None:
    """Prints the answer, a table for each metric, and the findings."""
    results = judgement.results
    # Output to a pipe is not wrapped.
    is_wide = not console.is_terminal
    if results.question.text:
        console.print(Text(results.question.text, style="bold"), soft_wrap=is_wide)
    if judgement.answer:
        for clause in (judgement.answer, *(f"• {text}" for text in judgement.further)):
            console.print(Text(clause), soft_wrap=is_wide)
    for line in expectations(judgement):
        console.print(line, soft_wrap=is_wide)
    if judgement.searches:
        # The answer of a search does not contain its verdict.
        view = View(judgement)
        console.print(Text(f"Verdict: {view.standing}. {describe_verdict(view)}"), soft_wrap=is_wide)
    for result in judgement.searches:
        for renderable in render_search(result):
            output = fold_cells(renderable, console) if isinstance(renderable, Table) else renderable
            console.print(output, soft_wrap=is_wide)
    for metric in () if judgement.searches else results.headline_metrics:
        measured = (variant for variant, name in judgement.cells if name == metric)
        for part in dict.fromkeys(select_dimensions(variant, projected.table) for variant in measured):
            console.print(metric_table(judgement, projected, metric, part, console))
    if any("within blocks" in pair.test for pair in judgement.comparisons if pair.test):
        console.print(Text("Ratios are means of the ratios within blocks, not ratios of the medians.", style="dim"))
    if console.is_terminal:
        for line in plot_percentiles(judgement, console.width):
            console.print(line, soft_wrap=True)
    if scenarios_of := plain_table("scenarios", scenarios.table(View(judgement))):
        console.print(fold_cells(scenarios_of, console))
    if of_stages := plain_table("by stage", stages.create_table(View(judgement))):
        console.print(fold_cells(of_stages, console))
    for content in faults.tables(View(judgement)):
        if (
            table := plain_table(content.title.lower(), content)
        ) is not None and content.title != faults.INSTANTS_TITLE:
            console.print(fold_cells(table, console))
    if results.question.repeats:
        # That module imports this one.
        from loadstone.report.terminal.repeats import repeats

        for metric in results.headline_metrics:
            if (each_repeat := repeats(judgement, metric)) is not None:
                console.print(fold_cells(each_repeat, console))
    for used in servers(judgement, console):
        console.print(used)
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=is_wide)
    for renderable in findings(judgement):
        console.print(renderable, soft_wrap=is_wide)


def expectations(judgement: Judgement) -> list[Text]:
    """A line for each expectation, with a remedy for undecided expectations."""
    styles = {"true": "green", "false": "bold red", "undecided": "yellow"}
    lines = []
    for item in judgement.expectations:
        lines.append(Text.assemble((f"{SIGNS[item.answer]} ", styles[item.answer]), describe(item)))
        lines += [Text(f"  hint: {item.remedy}", style="dim")] if item.remedy else []
    return lines


def plain_table(title: str, content: Content) -> Table | None:
    """A table of the report for the terminal; None without rows."""
    if not content:
        return None
    table = create_frame(title)
    for column in content.columns:
        table.add_column(column.title, justify="right" if column.align == "right" else "left")
    for group in content.groups:
        if group.title:
            table.add_row(Text(group.title, style="bold"))
        for row in group.rows:
            table.add_row(*(entry.text for entry in row))
    return table


def create_frame(title: str) -> Table:
    """A table without columns."""
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)


def render_search(result: Search) -> list[Table | Text]:
    """The table of a search's probes, and the reason why the search stopped."""
    table = create_frame(" ".join(["probes", *([variant_name(result.context)] if result.context else [])]))
    for head in search.heads(result):
        table.add_column(head, justify="left" if head == search.DECISION else "right", no_wrap=head != search.DECISION)
    for row in search.rows(result):
        table.add_row(*row)
    return [table, *(Text(f"{line}.") for line in search.explanation(result))]


def servers(judgement: Judgement, console: Console) -> Iterator[RenderableType]:
    """The resources that the servers of each variant used, if any servers were observed."""
    content = tabulate_variants(View(judgement))
    rows = [row for group in content.groups for row in group.rows]
    if not rows:
        return
    for names in (None, NAMES_WIDTH):
        if fits(table := tabulate_usage(content.columns, rows, names), console):
            yield table
            return
    yield Text("servers", style="bold")
    for name, *used in rows:
        yield Padding(Text(name.text, style="cyan"), (0, 0, 0, 1))
        cells = zip(content.columns[1:], used, strict=True)
        yield Padding(", ".join(f"{column.title} {entry.text}" for column, entry in cells), (0, 0, 0, 3))
    yield Text("")


def tabulate_usage(columns: Sequence[Column], rows: Sequence[Sequence[TableCell]], names: int | None) -> Table:
    """A row for each variant; names are broken into lines of at most `names` characters."""
    table = create_frame("servers")
    first, *figures = columns
    table.add_column(first.title, no_wrap=names is None, max_width=names)
    for column in figures:
        # Above short figures, a title on two lines takes less width than a title on one line.
        table.add_column(column.title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(entry.text for entry in row))
    return table


def fold_cells(table: Table, console: Console) -> RenderableType:
    """A table whose cells are wrapped if the console is too narrow, or its rows as text if a word would be cut: a part
    of a figure looks like a different figure."""
    if fits(table, console):
        return table
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    lines = ["".join(segment.text for segment in line) for line in console.render_lines(table)]
    cells = [text for column in table.columns for text in (column.header, *column.cells)]
    is_cut = {word for cell in cells for word in str(cell).split()} - set(" ".join(lines).split())
    return Group(*list_rows(table)) if is_cut else table


def list_rows(table: Table) -> Iterator[RenderableType]:
    """The rows of a table as text, with the title of its column before each figure."""
    yield Text(str(table.title), style="bold")
    for row in zip(*(column.cells for column in table.columns), strict=True):
        name, *texts = (str(cell) for cell in row)
        titles = (str(column.header) for column in table.columns[1:])
        figures = [" ".join(filter(None, pair)) for pair in zip(titles, texts, strict=True) if pair[1]]
        yield Padding(Text(name, style="cyan"), (0, 0, 0, 1))
        if figures:
            yield Padding(Text(", ".join(figures)), (0, 0, 0, 3))
    yield Text("")


def fits(table: Table, console: Console) -> bool:
    """Whether a table fits into the width of the console."""
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width


def select_dimensions(variant: VariantKey, keys: Sequence[str]) -> VariantKey:
    """A variant's values of some keys, in the order of the keys."""
    config = dict(variant)
    return tuple((key, config[key]) for key in keys if key in config)


def metric_table(
    judgement: Judgement, projected: Projected, metric: str, part: VariantKey, console: Console
) -> RenderableType:
    """One metric: a column for each value of the compared dimension, or a row for each value if columns do not fit."""
    cells = [
        cell
        for (variant, item), cell in judgement.cells.items()
        if item == metric and select_dimensions(variant, projected.table) == part
    ]
    title = " ".join([metric, *(f"{key}={value}" for key, value in part)])
    compared = {item.contender.variant: item for item in judgement.comparisons if item.metric == metric}
    bases = [dict(item.baseline.variant).get(projected.col) for item in compared.values()]
    baseline = bases[0] if bases else judgement.results.question.baseline
    grid = Grid(title, projected, figures(judgement, cells), compared, baseline)
    broad = grid.broad()
    return broad if fits(broad, console) else fold_cells(grid.long(), console)


@dataclass(frozen=True)
class Grid:
    """The figures of one metric by variant, with both layouts."""

    title: str
    projected: Projected
    texts: dict[VariantKey, str]
    compared: dict[VariantKey, Comparison]
    baseline: Scalar | None

    @cached_property
    def rows(self) -> dict[VariantKey, dict[Scalar, VariantKey]]:
        """The variants by their row keys and by their values in the compared dimension."""
        cells_of: dict[VariantKey, dict[Scalar, VariantKey]] = {}
        for variant in self.texts:
            row, column = select_dimensions(variant, self.projected.row), dict(variant).get(self.projected.col, "")
            cells_of.setdefault(row, {})[column] = variant
        return dict(sorted(cells_of.items(), key=lambda item: natural_key(item[0])))

    @cached_property
    def columns(self) -> list[Scalar]:
        """The values of the compared dimension, the baseline first."""
        names = dict.fromkeys(column for row in self.rows.values() for column in row)
        return sorted(names, key=lambda value: (value != self.baseline, natural_key(value)))

    def empty(self) -> Table:
        """A table without rows; its columns are the row keys."""
        table = create_frame(self.title)
        for key in self.projected.row:
            table.add_column(key, style="cyan", no_wrap=True)
        return table

    def broad(self) -> Table:
        """A row for each combination of the row keys, with figures and changes side by side."""
        table = self.empty()
        changing = {column for row in self.rows.values() for column, variant in row.items() if variant in self.compared}
        for column in self.columns:
            table.add_column(str(column) or "all", justify="right", no_wrap=True)
            if column in changing:
                table.add_column("", no_wrap=True)
        for row, cells in self.rows.items():
            line: list[str | Text] = [str(value) for _, value in row]
            for column in self.columns:
                here = cells.get(column, ())
                line.append(self.texts.get(here, ""))
                if column in changing:
                    line.append(change(self.compared.get(here)))
            table.add_row(*line)
        return table

    def long(self) -> Table:
        """A row for each variant."""
        table = self.empty()
        table.add_column(self.projected.col, style="cyan", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
        if self.compared:
            table.add_column(f"against {self.columns[0]}", no_wrap=True)
        for row, cells in self.rows.items():
            for column in (item for item in self.columns if item in cells):
                here = cells[column]
                changes = [change(self.compared.get(here))] if self.compared else []
                table.add_row(*(str(item) for _, item in row), str(column), self.texts[here], *changes)
            table.add_section()
        return table


def figures(judgement: Judgement, cells: Sequence[Cell]) -> dict[VariantKey, str]:
    """Medians in the same unit, so that they can be compared at a glance, each with its bound and interval."""
    content = [cell for cell in cells if not cell.withheld]
    estimates = [(cell, interval_of(judgement, cell)) for cell in content]
    numbers = [(cell.estimate.value, low, high) for cell, (low, high, _) in estimates]
    is_one_unit = len({cell.unit for cell in content}) == 1
    last: list[int | None] = []
    for cell, (_, low, high) in zip(content, numbers, strict=True):
        digit = wording.figure_digit(cell.estimate, cell.unit)
        if digit is None and cell.unit in units.SCALED and abs(cell.estimate.value) >= 1000:
            # Without an interval, a figure has no more than the usual three digits.
            digit = units.digit_carried(cell.estimate.value, cell.estimate.value)
        last += [digit, *(wording.ends_digit(end, low, high, digit) for end in (low, high))]
    if is_one_unit:
        flat = units.format_alike([number for triple in numbers for number in triple], content[0].unit, last)
    else:
        flat = [
            units.format_figure(number, cell.unit, last[3 * at + part])
            for at, (cell, triple) in enumerate(zip(content, numbers, strict=True))
            for part, number in enumerate(triple)
        ]
    texts = {}
    for at, (cell, (_, _, label)) in enumerate(estimates):
        text, first, second = flat[3 * at : 3 * at + 3]
        between = wording.join_ends(first, second)
        # The unit is written only with the median.
        ends = f" ({label}{between.rpartition(' ')[0] or between.removesuffix('×')})" if first != second else ""
        texts[cell.variant] = units.format_bound(text, judgement.output_bound(cell)) + ends
    return {**{cell.variant: "withheld" for cell in cells}, **texts}


def interval_of(judgement: Judgement, cell: Cell) -> tuple[float, float, str]:
    """The ends of a cell's interval (equal if it has no interval), and a label; for a single run, the interval within
    the run."""
    estimate = judgement.output_estimate(cell)
    value, low, high = estimate.value, estimate.low, estimate.high
    if low is not None and high is not None:
        return low, high, ""
    if cell.metric == THROUGHPUT and cell.estimate.n == 1:
        run = judgement.within.get(judgement.results.variants[cell.variant][0].trial)
        if run is not None and run.low is not None and run.high is not None:
            return run.low, run.high, "within the run "
    return value, value, ""


def change(comparison: Comparison | None) -> Text:
    """The change from baseline to contender, with p and n; `~` without evidence; empty for the baseline."""
    if comparison is None:
        return Text("")
    n = comparison.n_text
    p = wording.p_text(comparison.p, comparison.p_adjusted) or "p=?"
    ratio = wording.short_change(comparison.ratio.value)
    match comparison.claim:
        case "impossible":
            # Single runs do not allow a ratio.
            is_single = min(comparison.baseline.estimate.n, comparison.contender.estimate.n) == 1
            return Text(f"({n})" if is_single else f"{ratio} ({n})", style="dim")
        case "refused":
            return Text("refused: invalid", style="bold red")
        case "unranked":
            return Text(f"not ranked: {comparison.why}", style="yellow")
        case "none":
            return Text(f"~ {p} {n}", style="dim")
        case "same" | "slight":
            return Text(f"{'=' if comparison.claim == 'same' else '≈'} {ratio} {n}", style="dim")
    ends = wording.change_interval(comparison.ratio)
    ratio = wording.change_text(comparison.ratio, bound=comparison.bound)
    interval = f" ({ends})" if ends else ""
    if comparison.claim == "descriptive":
        is_open = not excludes_one(comparison.ratio)
        text = f"~ {wording.ratio_interval(comparison.ratio)}" if is_open else f"{ratio}{interval}"
        return Text(f"{text} {n}", style="dim")
    style = "green" if comparison.claim == "better" else "red"
    return Text(f"{ratio}{interval} {p} {n}", style=style)


def findings(judgement: Judgement, *, whole: bool = False) -> list[Text]:
    """The findings by check, the most severe first, with a few messages for each check, or all if `whole`. Then, if
    `whole` or if there are no findings, the checks that did not run."""
    lines = []
    for group in warnings(judgement, whole=whole):
        name = (f"{group.check} ", STYLES[group.severity])
        for message, hint in zip(group.messages, group.hints, strict=True):
            lines.append(Text.assemble(name, (f"({group.label}) ", "dim"), message))
            lines += [Text(f"  hint: {hint}", style="dim")] if hint else []
        if group.more:
            lines.append(Text(f"  … and {units.count_noun(group.more, 'more message')} from this check", style="dim"))
        if address := page_address(group.page):
            lines.append(Text(f"  page: {address}", style="dim"))
    if whole or not lines:
        lines += [Text(f"did not run: {group}", style="dim") for group in list_unavailable_checks(judgement)]
    return lines
