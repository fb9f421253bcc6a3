"""The report's sections before they become HTML or Markdown: their content and their order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from loadstone.format import units, wording
from loadstone.judge.answer import name_contexts
from loadstone.judge.figures import is_latency
from loadstone.report import (
    comparison,
    conditions,
    faults,
    hosts,
    reproduce,
    scenarios,
    search,
    server_tables,
    stages,
    sweep,
    trials,
)
from loadstone.report.charts import device, intervals, percentiles, scaling, time_series
from loadstone.report.charts import faults as fault_charts
from loadstone.report.charts.figure import Figure, Panel
from loadstone.report.reproduce import Recipe
from loadstone.report.table import Table
from loadstone.report.view import View
from loadstone.report.warnings import (
    Warnings,
    list_unavailable_checks,
)
from loadstone.results.result_set import variant_key
from loadstone.results.value import THROUGHPUT
from loadstone.search.sentence import describe_rule

# The number of panels that fit side by side above the fold.
OPENING_PANELS = 2
# The titles of charts above the fold whose panels do not name their figures.
OPENING_TITLES = {
    "throughput": "Throughput",
    "throughput-over-time": "Throughput over time",
    "latency-over-time": "p50 and p99 of all operations over time",
    "percentiles": "Latency by percentile",
}
# The maximum number of names in a headline.
SIDES_MAX = 3
# Dimensions whose values readers already find in other clauses of the setting, in the question or in the answer.
STATED = frozenset({"system", "store", "workload", "clients", "rate", "fault"})
HOST_LEAD = "Median over the trials, with the range in parentheses."


@dataclass(frozen=True)
class Section:
    """One part of the report; fields that do not apply are empty."""

    name: str
    title: str
    # Sentences that precede the tables and figures.
    lead: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    warnings: tuple[Warnings, ...] = ()
    recipe: Recipe | None = None
    environment: bool = False
    # Tables that are shown on demand, and the text that unfolds them.
    more: tuple[Table, ...] = ()
    folded: str = ""

    def __bool__(self) -> bool:
        """Whether the section has any content."""
        parts = (self.lead, self.tables, self.more, self.figures, self.warnings, self.recipe, self.environment)
        return any(parts)


def sections(view: View) -> list[Section]:
    """The sections with content, in the order of the report."""
    if not view.results.trials:
        content = [warnings_section(view), environment(view), again(view)]
    else:
        against_load = load_section(view)
        content = [
            search_section(view),
            examine_faults(view),
            comparison_section(view),
            table_section("stages", "By stage", stages.LEAD, stages.create_table(view)),
            table_section("scenarios", "Scenarios", scenarios.LEAD, scenarios.table(view)),
            against_load,
            table_section("loads", "By load", sweep.describe_table(view), sweep.create_table(view)),
            *chart_variants(view, against_load),
            chart_section("percentiles", "Latency by percentile", percentiles.curves(view)),
            time_section(view),
            devices(view),
            Section("servers", "Servers", tables=tuple(server_tables.tables(view))),
            Section("hosts", "Hosts", tables=tuple(hosts.tables(view))),
            warnings_section(view),
            compare_guarantees(view),
            table_section("host", "Host activity", HOST_LEAD, conditions.host(view)),
            environment(view),
            again(view),
            every(view),
        ]
    return [section for section in content if section]


def opening(view: View, content: list[Section]) -> tuple[Figure | None, list[Section]]:
    """The chart next to the answer (the curve or the deciding metric), and the sections without this chart."""
    figures = {section.name: section.figures[0] for section in content if section.figures}
    figures |= {figure.name: figure for section in content for figure in section.figures}
    metric = next(iter(view.headline), THROUGHPUT)
    decides = "throughput" if metric == THROUGHPUT else "device" if metric in device.metrics(view) else "headline"
    # The chart follows the answer: throughput by clients, unless another metric or other variants are compared.
    judged = view.judgement
    curved = metric == THROUGHPUT or judged.searches or not judged.comparisons or view.dimension == view.load
    order = ("scaling", decides) if curved else (decides, "scaling")
    # A chart of intervals would show a single run as one mark; its time series shows more.
    alone: tuple[str, ...] = ()
    if len(view.results.trials) == 1:
        alone = ("latency-over-time", "percentiles") if is_latency(metric) else ("throughput-over-time",)
    names = [name for name in ("faults", *alone, *order, "throughput", "headline") if name in figures]
    if not names:
        return None, content
    # Figures without a title here have panels that name their metrics. A caption may refer to a figure further down.
    first = figures[names[0]]
    title = OPENING_TITLES.get(names[0], "")
    caption = (
        "" if names[0].endswith("over-time") else first.caption.replace(intervals.AS_THROUGHPUT, intervals.TO_READ)
    )
    if view.judgement.comparisons:
        caption = caption.replace(intervals.TO_READ, intervals.TO_READ + intervals.RATIOS)
    first = replace(first, title=title, caption=caption)
    if len(first.panels) > OPENING_PANELS:
        # The complete figure stays where it is.
        panels = choose_panels(first)
        caption = f"{first.caption} Further panels are below."
        return replace(first, name="opening", panels=tuple(panels), caption=caption), content
    chosen = figures[names[0]]
    rest = [replace(item, figures=tuple(figure for figure in item.figures if figure is not chosen)) for item in content]
    return first, [section for section in rest if section]


def choose_panels(figure: Figure) -> list[Panel]:
    """The panels above the fold: throughput and one latency for each of two contexts; else the panels with the most
    rows.

    A panel with only one side does not answer the question.
    """
    contexts: dict[str, list[Panel]] = {}
    for panel in figure.panels:
        contexts.setdefault(panel.title.partition(" · ")[2], []).append(panel)
    if figure.name == "scaling" and len(contexts) == OPENING_PANELS:
        return [panel for row in zip(*contexts.values(), strict=False) for panel in row][: 2 * OPENING_PANELS]
    return sorted(figure.panels, key=lambda panel: -panel.height)[:OPENING_PANELS]


def search_section(view: View) -> Section:
    """The section on the searches, with each probe."""
    if not view.judgement.searches:
        return Section("search", "Search")
    rule = view.judgement.searches[0].rule
    least, most = rule.at_least, rule.at_most
    count = units.count_noun(max(least, most or 0), "trial")
    count = f"{least} to {count}" if most and most > least else count
    count += ", with more at the ends of the bracket as it narrows"
    lead = f"Searched for {describe_rule(rule)}; a probe has {count}."
    return Section("search", "Search", (lead,), tuple(search.tables(view)))


def examine_faults(view: View) -> Section:
    """The section on faults: outage, recovery and losses."""
    if not view.judgement.outages:
        return Section("faults", "Faults")
    charts = [chart for chart in (fault_charts.timeline(view), fault_charts.repeats(view)) if chart]
    return Section("faults", "Faults", tables=tuple(faults.tables(view)), figures=tuple(charts))


def comparison_section(view: View) -> Section:
    """The section on the comparison, or on the figures if nothing is compared."""
    tables = comparison.tables(view)
    lead = []
    if not tables:
        lead.append("None of the requested metrics was measured.")
    elif not view.judgement.comparisons:
        alone = "there is only one variant", "no variant differs from a baseline in one dimension alone"
        why = "the loads of a search are not alternatives" if view.judgement.searches else alone[len(view.variants) > 1]
        lead.append(f"Nothing is compared: {why}.")
    elif view.constants:
        lead.append("All trials: " + ", ".join(f"{name} {value}" for name, value in view.constants.items()) + ".")
    title = "Comparison" if view.judgement.comparisons else "Figures"
    more = (remaining,) if (remaining := comparison.tabulate_remaining(view)) else ()
    folded = units.count_noun(sum(len(group.rows) for table in more for group in table.groups), "further figure")
    return Section("comparison", title, tuple(lead), tuple(tables), more=more, folded=folded)


def chart_section(name: str, title: str, *figures: Figure) -> Section:
    """A section with only figures."""
    return Section(name, title, figures=tuple(figure for figure in figures if figure))


def chart_variants(view: View, against_load: Section) -> list[Section]:
    """The headline metrics by variant; nothing if the charts against load show every variant."""
    if against_load and (view.dimension == view.load or view.judgement.searches):
        return []
    return [
        chart_section("throughput", "Throughput", intervals.throughput(view)),
        chart_section("headline", "Other headline figures", intervals.chart_further_metrics(view)),
    ]


def table_section(name: str, title: str, lead: str, table: Table) -> Section:
    """A section with one table."""
    return Section(name, title, (lead,) if lead else (), (table,)) if table else Section(name, title)


def time_section(view: View) -> Section:
    """The section on throughput and latency over time."""
    series = time_series.select_series(view)
    if not series.of:
        return Section("time", "Over time", ("No time series was recorded for these trials.",))
    return chart_section("time", "Over time", time_series.throughput(view, series), time_series.latency(view, series))


def load_section(view: View) -> Section:
    """The section on throughput and latency against load."""
    figure = scaling.curves(view)
    if not figure:
        return Section("scaling", "Against load")
    notes = [f"{note[:1].upper()}{note[1:]}" for name, note in view.judgement.notes.items() if name == "curves"]
    lead = tuple(f"{text}." for text in [*scaling.sentences(view), *notes])
    return Section("scaling", "Against load", lead, figures=(figure,))


def devices(view: View) -> Section:
    """The section on device bytes."""
    figure = device.bars(view)
    if figure:
        return Section("device", "Device bytes", figures=(figure,))
    reasons = dict.fromkeys(device.missing_reason(view, key) for key in view.variants)
    known = [reason for reason in reasons if reason != "not measured"]
    return Section("device", "Device bytes", (f"Not measured: {', '.join(known)}.",) if known else ())


def warnings_section(view: View) -> Section:
    """The findings that readers should know before they rely on a figure."""
    notes = tuple(f"While reading: {warning}." for warning in view.results.warnings)
    unavailable = list_unavailable_checks(view.judgement)
    notes += (f"Checks that did not run, or not in every trial: {'; '.join(unavailable)}.",) if unavailable else ()
    groups = tuple(view.warnings)
    if not groups:
        notes = ("No check found a problem.", *notes) if view.results.trials else notes
    return Section("warnings", "Warnings", notes, warnings=groups)


def environment(view: View) -> Section:
    """The section on hosts and versions."""
    return Section("environment", "Environment", environment=bool(view.results.environment))


def again(view: View) -> Section:
    """How to reproduce the results."""
    recipe = reproduce.recipe(view.results)
    has_command = any("command" in trial.facts for trial in view.results.trials)
    known = "the command is among the facts above" if has_command else "the command that produced them is not known"
    lead = () if recipe else (f"These results were imported; {known}.",)
    return Section("reproduce", "Measure it again", lead, recipe=recipe)


def compare_guarantees(view: View) -> Section:
    """The guarantees of each side: the facts that differ, and the remaining facts on demand."""
    differing, common = conditions.guarantees(view)
    count = sum(len(group.rows) for group in common.groups)
    if not differing and (not common or len(common.columns) <= 2):
        return Section("promises", "Guarantees", tables=(common,) if common else ())
    total = count + sum(len(group.rows) for group in differing.groups)
    notes = Counter(row[0].note for group in differing.groups for row in group.rows)
    count_unknown = notes["known for some"]
    unknown = (
        f"; {count_unknown} {'is' if count_unknown == 1 else 'are'} known for only some sides" if count_unknown else ""
    )
    verb = "differs" if notes["differs"] == 1 else "differ"
    lead = (
        f"{notes['differs']} of {units.count_noun(total, 'fact')} {verb}{unknown}." if differing else "No fact differs."
    )
    more = (common,) if common else ()
    folded = f"{units.count_noun(count, 'fact that is', 'facts that are')} the same on all sides" if common else ""
    return Section("promises", "Guarantees", (lead,), (differing,) if differing else (), more=more, folded=folded)


def every(view: View) -> Section:
    """The section with all trials."""
    number = units.count_noun(len(view.results.trials), "trial")
    folded = f"All {number}" if number != "1 trial" else number
    if pilots := len(view.results.pilots):
        folded += f", and {pilots:,} of the pilot block (excluded from the results)"
    return Section("trials", "Trials", more=(trials.table(view),), folded=folded)


def headline(view: View) -> str:
    """The question; for imported files without a question, the compared names; else the name of the results."""
    if view.results.question.text:
        return view.results.question.text
    compared = view.judgement.comparisons and not view.results.experiment and len(view.values) <= SIDES_MAX
    return units.join_names(view.values) if compared else view.results.name or "Results"


def describe_setting(view: View) -> list[str]:
    """The conditions that all trials share, as clauses: origin, store, load, guarantee, window, host."""
    trials = view.results.trials
    if not trials:
        return []
    facts = trials[0].facts
    shared = {name: fact for name, fact in facts.items() if all(trial.facts.get(name) == fact for trial in trials)}
    verb = "measured by" if view.results.experiment else "imported from"
    clauses = [f"{verb} {shared['tool']}"] if "tool" in shared else []
    clauses += [f"job {shared['job_name']}"] if "job_name" in shared else []
    # If sides have different stores, their names are in the question and in the answer.
    if "store" in shared:
        name, version = str(shared["store"]), str(shared.get("version", ""))
        # The version of a server begins with the name of the product.
        clauses.append(f"store {version}" if version[:1].isalpha() else f"store {name} {version}".rstrip())
    clauses += [f"{name} {value}" for name, value in view.constants.items() if name not in STATED]
    clauses += [str(shared["mix"])] if "mix" in shared else []
    records, size = (trials[0].numeric_fact(name) if name in shared else None for name in ("records", "record_bytes"))
    if records:
        clauses.append(units.count_noun(records, "record") + (f" of {units.format_size(size)}" if size else ""))
    if (level := shared.get("durability")) is not None:
        clauses.append(f"writes survive {wording.fact_value('durability', level)}")
    clients = {trial.clients for trial in trials}
    if len(clients) == 1 and (number := clients.pop()):
        clauses.append(units.count_noun(number, "client"))
    windows = [window for trial in trials if (window := trial.value("runtime"))]
    if len(windows) == len(trials) and max(windows) <= 1.02 * min(windows):
        clauses.append(f"{units.format_duration(windows[0])} window")
    cpus, memory = (trials[0].numeric_fact(name) if name in shared else None for name in ("cpus", "memory_bytes"))
    if cpus and memory:
        clauses.append(f"{units.count_noun(cpus, 'processor')}, {units.format_size(memory)} of memory")
    return clauses


def gist(view: View) -> list[str]:
    """A short summary of the result set, as clauses."""
    results = view.results
    if not results.trials:
        return ["no trials"]
    repeats = sorted({len(trials) for trials in view.variants.values()})
    number = f"{repeats[0]}" if len(repeats) == 1 else f"{repeats[0]} to {repeats[-1]}"
    clauses = [
        units.count_noun(len(results.trials), "trial"),
        units.count_noun(len(view.variants), "variant"),
        f"{number} {'repeat' if number == '1' else 'repeats'} each",
    ]
    if len(view.variants) > 1:
        clauses.append("interleaved in random order" if results.interleaved else "not in random order")
    if isinstance(seconds := results.pilot.get("warmup_seconds"), int | float):
        clauses.append(f"{seconds:g} s of warm-up, found by a pilot block{cut(view)}")
    if missing := len(set(results.planned) - {trial.trial for trial in results.trials}):
        clauses.append(f"{missing:,} planned but missing")
    return [*clauses, count_warnings(view)]


def cut(view: View) -> str:
    """A clause if the pilot's cap shortened the warm-up: ` and capped, although lmdb needs 4.5 s`; else empty."""
    pilot, configs = (
        view.results.pilot,
        {pilot_trial.trial: set(variant_key(pilot_trial.config)) for pilot_trial in view.results.pilots},
    )
    groups = pilot.get("groups", ()) if pilot.get("capped") else ()
    keys = [set.intersection(*(configs.get(trial, set()) for trial in group["trials"])) for group in groups]
    needs = []
    for group, name in zip(groups, name_contexts([tuple(sorted(key)) for key in keys]), strict=True):
        seconds = group.get("warmup_seconds", 0.0)
        if seconds > pilot["cap_seconds"]:
            needs.append(f"{name if len(groups) > 1 else 'every variant'} needs {seconds:g} s")
    return f" and capped, although {units.list_items(needs)}" if needs else ""


def count_warnings(view: View) -> str:
    """The number of checks with findings, by severity."""
    counts = Counter(group.label for group in view.warnings)
    texts = [
        units.count_noun(number, label) if label == "note" else f"{number} {label}" for label, number in counts.items()
    ]
    return f"warnings: {', '.join(texts)}" if texts else "no check found a problem"
