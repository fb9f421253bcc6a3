"""The judge's answer as Arrow tables and charts: the class `Judgement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from loadstone.api.frames import convert_to_pandas, convert_to_polars, require_table
from loadstone.results.export import build_column

if TYPE_CHECKING:
    import altair as alt
    import pandas
    import polars
    import pyarrow as pa

    from loadstone.judge.judgement import Comparison, VariantKey
    from loadstone.judge.judgement import Judgement as Judged

JudgementTable = Literal["figures", "comparisons", "scenarios", "findings", "trials", "expectations", "searches"]
ESTIMATE = ("value", "low", "high", "level", "n")


class Judgement:
    """The judge's answer, with the figures and findings on which it is based."""

    def __init__(self, judged: Judged) -> None:
        """Wraps a judgement; `Run.judgement` and `Run.compare` return this class."""
        # The input for the report; not part of the stable interface.
        self.judged = judged

    def __repr__(self) -> str:
        """The answer and the verdict."""
        return f"<loadstone.Judgement {self.verdict}: {self.answer}>"

    @property
    def answer(self) -> str:
        """The answer in one sentence, as in the report."""
        return self.judged.sentence

    @property
    def verdict(self) -> str:
        """`valid`, `unchecked`, `suspect` or `invalid`: the verdict on the answer, as in the report."""
        return str(self.judged.answer_verdict)

    @cached_property
    def figures(self) -> pa.Table:
        """A row for each metric of each variant: its median over repeats and, with six or more repeats, its interval.

        `withheld` states why the report does not show a figure. `low` and `high` are null if there is no interval;
        `level` is the confidence level of the interval.
        """
        cells = list(self.judged.cells.values())
        estimates = [self.judged.output_estimate(cell) for cell in cells]
        return self._table(
            [cell.variant for cell in cells],
            {
                "metric": [cell.metric for cell in cells],
                "unit": [cell.unit for cell in cells],
                **{name: [getattr(estimate, name) for estimate in estimates] for name in ESTIMATE},
                "bound": [self.judged.output_bound(cell) for cell in cells],
                "withheld": [cell.withheld for cell in cells],
            },
        )

    @cached_property
    def comparisons(self) -> pa.Table:
        """A row for each metric and contender: `ratio` (contender ÷ baseline), its interval, `p`, and the `claim`.

        `claim` is better, worse, same, slight, none, impossible, refused, unranked or descriptive; `why` states the
        reason for the claim. `exploratory` is false for the deciding metric. `p_adjusted` is `p` with Holm's
        correction.
        """
        every = list(self.judged.comparisons)
        names = ("p", "p_adjusted", "effect", "test", "claim", "why", "exploratory")
        return self._table(
            [comparison.context for comparison in every],
            {
                **comparison_columns(every),
                **ratio_columns([comparison.ratio for comparison in every]),
                "n": [comparison.ratio.n for comparison in every],
                **{name: [getattr(comparison, name) for comparison in every] for name in names},
                "at_least": [comparison.bound for comparison in every],
                "verdict": [str(comparison.verdict) for comparison in every],
            },
        )

    @cached_property
    def scenarios(self) -> pa.Table:
        """A row for each scenario of each comparison: the ratio, its interval, and the claim in this scenario."""
        every = [(comparison, row) for comparison in self.judged.comparisons for row in comparison.scenarios]
        return self._table(
            [comparison.context for comparison, _ in every],
            {
                **comparison_columns([comparison for comparison, _ in every]),
                "scenario": [row.name for _, row in every],
                **ratio_columns([row.ratio for _, row in every]),
                "n": [row.n for _, row in every],
                "claim": [row.reading for _, row in every],
            },
        )

    @cached_property
    def findings(self) -> pa.Table:
        """A row for each finding, with the worst first: `check`, `severity`, `message`, `hint`, `trials`, `metric`."""
        import pyarrow as pa

        every = self.judged.all_findings
        return pa.table(
            {
                "check": pa.array([finding.check for finding in every], "string"),
                "severity": pa.array([finding.severity.name.lower() for finding in every], "string"),
                "message": pa.array([finding.message for finding in every], "string"),
                "hint": pa.array([finding.hint for finding in every], "string"),
                "trials": pa.array([list(finding.trials) for finding in every], pa.list_(pa.string())),
                "metric": pa.array([finding.metric or None for finding in every], "string"),
            }
        )

    @cached_property
    def trials(self) -> pa.Table:
        """A row for each trial, with its verdict."""
        import pyarrow as pa

        names = [trial.trial for trial in self.judged.results.trials]
        verdicts = [str(self.judged.trial_verdict(name)) for name in names]
        return pa.table({"trial": pa.array(names, "string"), "verdict": pa.array(verdicts, "string")})

    @cached_property
    def expectations(self) -> pa.Table:
        """A row for each condition: `text`, `of`, `answer` (true, false, undecided), `value` with its interval, `unit`.

        `value` and `bound` are the same as in `figures`, except for counts, shares, ratios, and variants with a failed
        trial. `value` is null if nothing was measured; `why` states why a condition is undecided.
        """
        every = self.judged.expectations
        return self._table(
            [()] * len(every),
            {
                **{
                    name: [getattr(item, name) for item in every]
                    for name in ("text", "of", "answer", "unit", "bound", "why")
                },
                **{name: [item.estimate and getattr(item.estimate, name) for item in every] for name in ESTIMATE},
            },
        )

    @cached_property
    def searches(self) -> pa.Table:
        """A row for each completed search: `over` (clients or rate), `kind` of the outcome, `load`, `low`, `high`."""
        ended = [(search, search.outcome) for search in self.judged.searches if search.outcome is not None]
        return self._table(
            [search.context for search, _ in ended],
            {
                "over": [search.rule.over for search, _ in ended],
                **{name: [getattr(outcome, name) for _, outcome in ended] for name in ("kind", "load", "low", "high")},
            },
        )

    @cached_property
    def charts(self) -> dict[str, alt.TopLevelMixin]:
        """The charts as Altair objects, keyed by their names in the report (`throughput`, `scaling`, `percentiles` …).

        The charts contain their data. `chart.save("x.svg")` and `alt.renderers.enable("svg")` work offline.
        """
        from loadstone.report.charts.figure import interactive
        from loadstone.report.charts.theme import file_config
        from loadstone.report.sections import sections
        from loadstone.report.view import View

        figures = (figure for section in sections(View(self.judged)) for figure in section.figures)
        return {figure.name: interactive(figure, file_config()) for figure in figures}

    def table(self, name: JudgementTable) -> pa.Table:
        """The table with this name. Raises LoadstoneError for any other name."""
        return getattr(self, require_table(name, JudgementTable))

    def to_pandas(self, table: JudgementTable = "comparisons") -> pandas.DataFrame:
        """A table as a pandas data frame. Raises LoadstoneError if pandas is not installed."""
        return convert_to_pandas(self.table(table))

    def to_polars(self, table: JudgementTable = "comparisons") -> polars.DataFrame:
        """A table as a Polars data frame. Raises LoadstoneError if Polars is not installed."""
        return convert_to_polars(self.table(table))

    def _table(self, variants: Sequence[VariantKey], columns: Mapping[str, Sequence[Any]]) -> pa.Table:
        """A table whose first columns are the dimensions of its rows."""
        import pyarrow as pa

        configs = [dict(variant) for variant in variants]
        names = [name for name in self.judged.results.dimensions if any(name in config for config in configs)]
        heads = {f"{name}_" if name in columns else name: [config.get(name) for config in configs] for name in names}
        return pa.table({name: build_column(values, None) for name, values in {**heads, **columns}.items()})


def comparison_columns(comparisons: Sequence[Comparison]) -> dict[str, list[Any]]:
    """The columns that identify a comparison."""
    return {
        "metric": [comparison.metric for comparison in comparisons],
        "unit": [comparison.unit for comparison in comparisons],
        "by": [comparison.by for comparison in comparisons],
        "baseline": [str(dict(comparison.baseline.variant).get(comparison.by)) for comparison in comparisons],
        "contender": [str(dict(comparison.contender.variant).get(comparison.by)) for comparison in comparisons],
    }


def ratio_columns(ratios: Sequence[Any]) -> dict[str, list[float | None]]:
    """The columns of ratios and their intervals."""
    return {
        "ratio": [ratio.value for ratio in ratios],
        "low": [ratio.low for ratio in ratios],
        "high": [ratio.high for ratio in ratios],
    }
