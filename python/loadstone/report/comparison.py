"""The comparison: a table for each headline metric, in the style of benchstat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadstone.format import units, wording
from loadstone.judge.clause import ratio_ends
from loadstone.judge.decision_table import excludes_one
from loadstone.judge.finding import Finding, Severity, Verdict, worst_verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import NO_CLAIM, View, shorten
from loadstone.results.result_set import ALL_OPERATIONS
from loadstone.results.value import metric_statistic
from loadstone.statistics.estimate import Estimate

# The maximum number of rows in a table, so that a report stays readable.
ROWS_MAX = 60
# The names that imported tools give to a bandwidth, and to the unit of 2^20 bytes per second.
TOOL_NAMES = {
    ("testdfsio", "bandwidth"): "Throughput",
    ("testdfsio", "io_rate"): "Average IO rate",
    ("fio", "bandwidth"): "bw",
    ("sysbench", "bandwidth"): "Throughput",
}
TOOL_UNITS = {"testdfsio": "mb/sec (2^20)", "fio": "MiB/s (2^20)", "sysbench": "MiB/s"}
NAME_MAX = 90
# All metrics of a single variant are shown without unfolding if there are at most this many.
UNFOLDED_MAX = 12
INTERVALS = "Intervals: "
# The notes are sorted by their first words, in this order; all other notes come last.
ORDER = (INTERVALS, "The interval", "Ratio: ", "Test: ")
# The ratio that each test uses, keyed by a part of the test's name.
RATIOS = {
    "within blocks": "the geometric mean of the ratios within blocks",
    "blocks, n": "the geometric mean of the ratios within blocks",
    "Mann": "the median of the ratios of all pairs of repeats",
    "Welch": "the ratio of the geometric means",
}
COLUMNS = (Column("median", "right", 13), Column("interval", "right", 18))
END = (Column("n", "right", 4), Column("verdict", width=16))
EXPLORATORY = "; this metric is exploratory, as only the first metric decides"


def tables(view: View) -> list[Table]:
    """A table for each measured headline metric; for a single variant, one table with a row for each metric."""
    if len(view.variants) == 1:
        return [content] if (content := table_alone(view, list_headline(view))) else []
    return [content for metric in view.headline if (content := table(view, metric))]


def tabulate_remaining(view: View) -> Table | None:
    """All further figures of a single variant; None for several variants, or without further figures."""
    if len(view.variants) != 1:
        return None
    headline = list_headline(view)
    return table_alone(view, [metric for metric in view.results.metrics if metric not in headline]) or None


def list_headline(view: View) -> list[str]:
    """The headline metrics of a single variant, and the latencies of all operations; every metric if there are few."""
    every = view.results.metrics
    return [*dict.fromkeys([*view.headline, *ALL_OPERATIONS, *(every if len(every) <= UNFOLDED_MAX else ())])]


def table_alone(view: View, metrics: Sequence[str]) -> Table:
    """Metrics of the only variant: median, interval, n, and verdict; for a single run without findings, only the
    figures."""
    (key,) = view.variants
    rows, methods = [], dict[str, None]()
    for metric in metrics:
        if row := entries(view, key, metric, compared=False):
            rows.append((TableCell(wording.metric_name(metric)), *row[1:]))
            methods.update(dict.fromkeys(reading(view, [key], metric)))
    columns: tuple[Column, ...] = (Column("metric", width=14), *COLUMNS, *END)
    if all((number.text, verdict.text) == ("1", NO_CLAIM) for *_, number, verdict in rows):
        columns = (columns[0], Column("figure", "right", 13))
        rows = [row[:2] for row in rows]
    return Table("", columns, (Rows("", tuple(rows)),) if rows else (), join_levels(methods))


def table(view: View, metric: str) -> Table:
    """Variants by context: median, interval, ratio to the baseline, p, n, and verdict."""
    compared = any(comparison.metric == metric for comparison in view.judgement.comparisons)
    groups: list[Rows] = []
    methods: dict[str, None] = {}
    row_count = omitted = 0
    for context, keys in view.keys_by_context.items():
        if row_count + len(keys) > ROWS_MAX and row_count:
            omitted += len(keys)
            continue
        rows = tuple(row for key in keys[:ROWS_MAX] if (row := entries(view, key, metric, compared)))
        omitted += len(keys) - len(keys[:ROWS_MAX])
        row_count += len(rows)
        if rows:
            groups.append(Rows(view.title(context), rows))
            methods.update(dict.fromkeys(reading(view, keys, metric)))
    if omitted:
        methods[f"{units.count_noun(omitted, 'more variant')} not shown here: values.jsonl has all of them"] = None
    columns = [Column(view.dimension or "variant", width=14), *COLUMNS]
    if compared:
        columns += [Column(f"against {baseline(view)}", "right", 28), Column("p", "right", 7)]
    columns += END
    if compared and not any(row[4].text for group in groups for row in group.rows):
        # Without any test, there is no column for p.
        del columns[4]
        groups = [Rows(group.title, tuple((*row[:4], *row[5:]) for row in group.rows)) for group in groups]
    return Table(wording.metric_name(metric), tuple(columns), tuple(groups), join_levels(methods))


def entries(view: View, key: VariantKey, metric: str, compared: bool) -> tuple[TableCell, ...]:
    """The row of one variant; empty if the variant ran but lacks the metric."""
    cell = view.cell(key, metric)
    if cell is None and not has_only_failed(view, key):
        return ()
    full = view.value(key)
    name = TableCell(shorten(full, NAME_MAX), aside=full if len(full) > NAME_MAX else "")
    if cell is None:
        of = f"all {units.count_noun(len(view.variants[key]), 'repeat')}"
        middle = [TableCell(wording.DASH, tone="muted"), TableCell("")] if compared else []
        end = (TableCell("0"), render_verdict(view.findings_of(key)))
        return (name, TableCell("failed", of), TableCell("none", tone="muted"), *middle, *end)
    verdict = render_verdict(view.findings_of(key, metric))
    if verdict.verdict is Verdict.VALID and view.standing == NO_CLAIM:
        verdict = TableCell(NO_CLAIM)
    end = (TableCell(str(cell.estimate.n)), verdict)
    middle = [TableCell(""), TableCell("")] if compared else []
    if cell.withheld:
        return (name, TableCell("withheld", cell.withheld, tone="muted"), TableCell(""), *middle, *end)
    if compared:
        comparison = view.comparisons.get((metric, key))
        middle = list(render_ratio(comparison) if comparison else explain_missing_ratio(view, key, metric))
    between = (
        TableCell(wording.interval_text(view.judgement.output_estimate(cell), cell.unit))
        if cell.estimate.low is not None
        else TableCell("none", tone="muted")
    )
    return (name, figure(view, cell), between, *middle, *end)


def has_only_failed(view: View, key: VariantKey) -> bool:
    """Whether every trial of a variant failed without figures."""
    trials = view.variants.get(key, ())
    return bool(trials) and all(trial.is_failure and not trial.values for trial in trials)


def figure(view: View, cell: Cell) -> TableCell:
    """The median with its bound, and the number of bounded repeats or the figure as an imported tool prints it."""
    of = f"{cell.bounded} of {units.count_noun(len(cell.samples), 'repeat')}" if cell.bound else ""
    return TableCell(view.figure(cell), of or tool_figure(view, cell))


def tool_figure(view: View, cell: Cell) -> str:
    """A bandwidth under the name and in the unit that the measuring tool uses; empty for other figures."""
    facts = view.variants[cell.variant][0].facts
    tool = str(facts.get("tool", ""))
    name = TOOL_NAMES.get((tool, metric_statistic(cell.metric)))
    if name is None or cell.unit != "B/s":
        return ""
    number = f"{cell.estimate.value / 2**20:,.2f}".rstrip("0").rstrip(".")
    job = str(facts.get("job_name", ""))
    # If a file has several jobs, each job is a variant, whose name already contains the job's name.
    of_job = f", job {job}" if job and job not in view.value(cell.variant) else ""
    return f"{name} {number} {TOOL_UNITS[tool]}{of_job}"


def explain_missing_ratio(view: View, key: VariantKey, metric: str) -> Iterator[TableCell]:
    """The cells in place of a ratio: a mark for the baseline, or the reason for the missing ratio."""
    named = baseline_value(view)
    beside = next(
        (
            key_of_baseline
            for key_of_baseline in view.keys_by_context[view.context(key)]
            if view.value(key_of_baseline) == named
        ),
        None,
    )
    if beside == key:
        yield TableCell("baseline", tone="muted")
    else:
        cell = None if beside is None else view.cell(beside, metric)
        why = "baseline withheld" if cell and cell.withheld else "no baseline in this context"
        why = "baseline failed" if beside is not None and has_only_failed(view, beside) else why
        yield TableCell("–", why, tone="muted")
    yield TableCell("")


def render_ratio(comparison: Comparison) -> Iterator[TableCell]:
    """The ratio to the baseline with its claim, and p."""
    ratio, claim = comparison.ratio, comparison.claim
    number, between = (
        wording.change_text(ratio, bound=comparison.bound),
        wording.change_interval(ratio, f" {wording.DASH} "),
    )
    comma = "," if number.endswith("lower") else ""
    short = wording.short_change(ratio.value)
    # The first part of the reason is the difference that the repeats could detect.
    why = f"; {comparison.why.partition('; ')[0]}" if comparison.why else ""
    least = min(comparison.baseline.estimate.n, comparison.contender.estimate.n)
    texts: dict[Claim, tuple[str, str]] = {
        "better": (f"{number}{comma} better", between),
        "worse": (f"{number}{comma} worse", between),
        "none": ("~", f"{wording.ratio_text(ratio)}, undecided: {describe_undecided(comparison)}{why}"),
        "same": ("=", f"{short}, no difference that matters"),
        "slight": ("≈", f"{short}, the difference is too small to matter"),
        # A single run does not allow a ratio (n=1).
        "impossible": (number if least > 1 else wording.DASH, comparison.why or f"n={least}: no claim possible"),
        "descriptive": (number, between) if excludes_one(comparison.ratio) else ("~", between),
        "refused": ("refused", refusal(comparison)),
        "unranked": ("not ranked", comparison.why),
    }
    # A difference is emphasised only if it can be trusted.
    is_trusted = comparison.verdict < Verdict.SUSPECT
    yield TableCell(*texts[claim], tone=claim if is_trusted and (claim == "better" or claim == "worse") else "muted")
    # A comparison that is refused or not ranked shows no p.
    has_p = claim not in ("refused", "unranked")
    p = wording.p_text(comparison.p, comparison.p_adjusted) if has_p else ""
    yield TableCell(p, aside=format_plain_p(comparison) if p else "")


def describe_undecided(comparison: Comparison) -> str:
    """The interval of an undecided ratio."""
    return ratio_ends(comparison, comparison.ratio)


def refusal(comparison: Comparison) -> str:
    """The reason why a comparison is refused."""
    worst = max(comparison.findings, key=lambda finding: finding.severity, default=None)
    return f"invalid: {worst.check}" if worst and worst.severity == Severity.INVALID else "a side is invalid"


def format_plain_p(comparison: Comparison) -> str:
    """The p before Holm's correction, if the correction changed it."""
    p, adjusted = comparison.p, comparison.p_adjusted
    changed = p is not None and adjusted is not None and f"{p:.3f}" != f"{adjusted:.3f}"
    return f"{p:.3f} before the correction" if changed else ""


def render_verdict(findings: Sequence[Finding]) -> TableCell:
    """The verdict of a row and the checks behind it."""
    worst = worst_verdict(findings)
    if worst is Verdict.VALID:
        return TableCell("", verdict=worst)
    level = Severity[worst.name]
    checks = dict.fromkeys(finding.check for finding in findings if finding.severity == level)
    return TableCell("", ", ".join(checks), verdict=worst)


def baseline(view: View) -> str:
    """The baseline's name."""
    named = baseline_value(view)
    return view.short.get(named, named)


def baseline_value(view: View) -> str:
    """The value of the compared dimension that is the baseline."""
    return view.value(view.judgement.comparisons[0].baseline.variant)


def reading(view: View, keys: Sequence[VariantKey], metric: str) -> Iterator[str]:
    """Notes on the methods behind the intervals and tests of some variants."""
    for key in keys:
        cell = view.cell(key, metric)
        if cell is not None and (method := describe_interval(cell.estimate)):
            yield method
            if view.judgement.output_estimate(cell).low != cell.estimate.low:
                yield 'The interval of an "at most" latency begins at the figure without the load generator\'s lateness'
        comparison = view.comparisons.get((metric, key))
        if comparison is not None and comparison.test:
            if ratio := next((text for part, text in RATIOS.items() if part in comparison.test), ""):
                yield f"Ratio: {ratio}, not the ratio of the medians"
            yield f"Test: {comparison.test}"
            if comparison.p_adjusted is not None:
                every = "all comparisons in this report" if comparison.exploratory else "the comparisons in this table"
                yield f"The p values are Holm-adjusted over {every}{EXPLORATORY if comparison.exploratory else ''}"
            if comparison.p == 1 and comparison.claim == "none" and len(comparison.scenarios) > 1:
                yield "p is 1 if two scenarios point in opposite directions"


def join_levels(methods: Iterable[str]) -> tuple[str, ...]:
    """The notes; intervals by the same method share a note: `Intervals: 96.1 % or 96.9 % confidence intervals …`."""
    levels: dict[str, list[str]] = {}
    notes: dict[str, None] = {}
    for note in methods:
        level, _, method = note.removeprefix(INTERVALS).partition(" %")
        if note.startswith(INTERVALS):
            levels.setdefault(method, []).append(level)
        notes[method if note.startswith(INTERVALS) else note] = None
    texts = [f"{INTERVALS}{units.join_names(levels[note], 'or')} %{note}" if note in levels else note for note in notes]
    return tuple(sorted(texts, key=lambda text: [not text.startswith(start) for start in ORDER]))


def describe_interval(estimate: Estimate) -> str:
    """The note on an interval: its level and method."""
    if estimate.low is None or estimate.level is None:
        return ""
    method = f" ({estimate.method})" if estimate.method else ""
    if "order statistics" in estimate.method:
        method = " of the median (order statistics)"
    return f"{INTERVALS}{estimate.level * 100:.3g} % confidence intervals{method}"
