"""The report's text: the content of the page and of the text for a pull request."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import report_support
from experiment_support import snapshot
from loadstone.errors import LoadstoneError
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report import answer, trials
from loadstone.report.charts.figure import Figure
from loadstone.report.sections import OPENING_PANELS, describe_setting, opening, sections
from loadstone.report.view import View
from loadstone.report.write import write
from loadstone.results.result_set import Question, ResultSet, variant_key
from loadstone.results.trial_result import values_by_metric

SNAPSHOTS = Path(__file__).parents[1] / "fixtures/report"


class Outline(HTMLParser):
    """Checks that elements are closed in order; collects headings and all text except scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.ids.extend(value or "" for name, value in attributes if name == "id")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """The visible text."""
        return " ".join(" ".join(self.words).split())


@functools.cache
def page(name: str) -> str:
    """The page of a crafted judgement."""
    return report_support.page(report_support.ALL[name]())


def outline(text: str) -> Outline:
    """The outline of a page."""
    result = Outline()
    result.feed(text)
    result.close()
    assert result.open == []
    return result


def names(judgement: Judgement) -> list[str]:
    """The names of the report's sections."""
    return [section.name for section in sections(View(judgement))]


@pytest.mark.parametrize("name", report_support.ALL)
def test_the_text_is_as_it_was(name: str) -> None:
    text = report_support.pull_request(report_support.ALL[name]())
    assert text == snapshot(SNAPSHOTS / f"{name}.md", text)


@pytest.mark.parametrize("name", report_support.ALL)
def test_page_is_well_formed_with_unique_ids(name: str) -> None:
    result = outline(page(name))
    assert len(set(result.ids)) == len(result.ids)


def test_page_shows_question_answer_and_verdict() -> None:
    text = outline(page("usual")).text
    assert report_support.QUESTION in text
    assert report_support.usual().answer in text
    assert "more than the 0.1 % that are tolerated (check errors , in 2 of 36 trials). Part of the answer" in text
    assert (
        "36 trials 6 variants 6 repeats each interleaved in random order warnings: 1 invalid, 1 suspect, 1 note" in text
    )


def test_first_screen_links_checks_to_findings() -> None:
    text = page("usual")
    (place,) = re.findall(r'\(check <a href="#([^"]+)">errors</a>, in 2 of 36 trials\)', text)
    assert f'id="{place}"' in text


def test_throughput_is_unscaled_and_latency_is_scaled() -> None:
    text = outline(page("import_pair")).text
    assert "1,770.70 op/s" in text
    assert "18.8 ms" in text
    assert "– n=1: no claim possible" in text


def test_refused_comparison_gives_its_reason_without_a_ratio() -> None:
    (line,) = [line for line in rows(report_support.usual(), "### throughput") if line.startswith("| fjall | 84,")]
    assert "| refused (invalid: errors) |" in line
    assert "×" not in line


def test_undecided_comparison_is_a_tilde() -> None:
    lines = rows(report_support.usual(), "### throughput")
    assert sum("\\~ (0.974×, undecided: " in line for line in lines) == 1


def strip_program(whole: str) -> str:
    """A page without the library that draws its charts."""
    start = whole.index('<script type="module">')
    return whole[:start] + whole[whole.index("</script>", start) :]


def rows(judgement: Judgement, heading: str) -> list[str]:
    """The lines below a heading."""
    return report_support.pull_request(judgement).partition(heading)[2].partition("\n#")[0].splitlines()


def test_checks_are_listed_once_with_trials_and_remedy() -> None:
    text = outline(page("usual")).text
    assert text.count("throughput still fell by 11 %") == 1
    assert "suspect not-steady 1 trial" in text
    assert "note page-cache 18 trials" in text
    assert "docs/checks/not-steady.md" in text
    assert "What to do: measure longer, or warm up longer: warmup: 60 s" in text


def test_note_without_check_names_no_page() -> None:
    judgement = report_support.single_variant()
    trial = judgement.results.trials[0].trial
    note = Finding("server-events", Severity.NOTE, "node-2 was considered down", "see its log", (trial,))
    page_text = outline(report_support.page(replace(judgement, trials={trial: (note,)}))).text
    assert "node-2 was considered down" in page_text
    assert "docs/checks" not in page_text


def render_notes(*messages: str) -> str:
    """The page of an experiment whose trials have these messages of a check, in turn."""
    judgement = report_support.single_variant()
    findings = {
        trial.trial: (Finding("stalled", Severity.SUSPECT, messages[at % len(messages)], "look", (trial.trial,)),)
        for at, trial in enumerate(judgement.results.trials)
    }
    return outline(report_support.page(replace(judgement, trials=findings))).text


def test_many_messages_of_a_check_are_shortened() -> None:
    text = render_notes(*(f"stood still as {name} ended" for name in "abcdefg"))
    assert "stalled 7 trials" in text
    assert "stood still as d ended" in text
    assert "stood still as e ended" not in text
    assert "and 3 more messages from this check" in text


def test_messages_differing_only_in_numbers_are_merged() -> None:
    text = render_notes("no p99 for 1.2 s, 40 of 1,000 were late", "no p99 for 3 s, 40 of 900 were late")
    assert "no p99 for 1.2 s, 40 of 1,000 were late (similar in all 7 trials)" in text


def test_guarantees_are_aligned_and_differences_marked() -> None:
    lines = rows(report_support.usual(), "## Guarantees")
    assert "| cache (known for some) | 33.6 MB | 33.6 MB | – |" in lines
    survive = "a process crash, not a power loss (durability os)"
    assert f"| writes survive | {survive} | {survive} | {survive} |" in lines


def test_sections_without_anything_to_say_are_not_there() -> None:
    assert names(report_support.empty_judgement()) == ["reproduce"]
    assert names(report_support.single_variant()) == [
        "comparison",
        "throughput",
        "time",
        "warnings",
        "reproduce",
        "trials",
    ]
    assert "scaling" in names(report_support.scaling())
    assert not {"scaling", "percentiles", "device", "host", "environment"} & set(names(report_support.import_pair()))


def test_what_is_missing_is_said_in_a_line() -> None:
    alone = outline(page("single_variant")).text
    assert "Nothing is compared: there is only one variant." in alone
    assert "No time series was recorded for these trials." in alone
    imported = outline(page("import_pair")).text
    assert "These results were imported; the command that produced them is not known." in imported
    assert "No answer: there are no trials." in outline(page("empty_judgement")).text


def test_reproduction_has_command_seed_and_file() -> None:
    text = outline(page("usual")).text
    assert "loadstone run experiments/quickstart.yaml --scale small" in text
    assert "Seed of keys, values and order: 20240611" in text
    assert " ".join(report_support.EXPERIMENT.split()) in text


def judge_metrics(
    *metrics: str, sizes: int = 1, without: str = "", findings: Mapping[str, Sequence[Finding]] | None = None
) -> Judgement:
    """Two stores on workload a, in `sizes` contexts; the first metric decides."""
    trials = [
        replace(
            trial,
            trial=f"{trial.trial}-{size}",
            values=values_by_metric(*(v for v in trial.values.values() if v.metric != without)),
        )
        for repeat in range(1, 7)
        for size in range(sizes)
        for trial in (report_support.trial(system, "a", repeat, size=size) for system in ("rocksdb", "lmdb"))
    ]
    question = Question("Which?", "system", "rocksdb", metrics)
    entries = {trial.trial: [*(findings or {}).get("all", ())] for trial in trials}
    return report_support.judge_results(ResultSet("asked", trials, question, interleaved=True), entries)


def read_panels(judgement: Judgement) -> tuple[Figure, set[str], set[str]]:
    """The chart next to the answer, the titles of all panels, and the titles of the panels on the page."""
    view = View(judgement)
    every = sections(view)
    first, rest = opening(view, list(every))
    assert first is not None
    there = {panel.title for section in every for figure in section.figures for panel in figure.panels}
    left = {
        panel.title
        for figure in [first, *(value for section in rest for value in section.figures)]
        for panel in figure.panels
    }
    return first, there, left


@pytest.mark.parametrize(
    ("metrics", "title"),
    [
        (("throughput", "read.p99"), ""),
        (("read.p99", "throughput"), "read p99"),
        (("device.written_per_operation", "throughput", "read.p99"), "written per operation"),
        (("write_amplification", "throughput"), "write amplification"),
    ],
)
@pytest.mark.parametrize("sizes", [1, 2, 3, 13])
def test_answer_chart_has_the_deciding_metric(metrics: tuple[str, ...], title: str, sizes: int) -> None:
    first, there, left = read_panels(judge_metrics(*metrics, sizes=sizes))
    assert first.panels[0].title == " · ".join(part for part in (title, "size 0" if sizes > 1 else "") if part)
    assert len(first.panels) <= OPENING_PANELS
    assert left == there


def test_deciding_latency_precedes_the_throughput_curve() -> None:
    results = report_support.scaling().results
    by_latency = replace(results, question=replace(results.question, metrics=("read.p99", "throughput")))
    judgement = judge_results(by_latency)
    assert judgement.answer.startswith("read p99")
    assert read_panels(judgement)[0].panels[0].title == "read p99 · clients 1"
    assert read_panels(judge_results(results))[0].panels[0].title == "throughput, op/s"


def test_first_caption_explains_itself_and_its_selection() -> None:
    assert read_panels(judge_metrics("read.p99", "throughput"))[0].caption.startswith("The vertical line")
    caption = read_panels(judge_metrics("throughput", sizes=13))[0].caption
    assert "Further panels are below." in caption


def test_page_without_throughput_or_validity_has_its_chart() -> None:
    assert read_panels(judge_metrics("read.p99", without="throughput"))[0].panels[0].title == "read p99"
    wrong = Finding("errors", Severity.INVALID, "all failed", "mend it")
    judgement = judge_metrics("throughput", findings={"all": [wrong]})
    first, there, left = read_panels(judgement)
    assert first.name == "throughput"
    assert left == there
    assert outline(report_support.page(judgement)).text.count("all failed") == 1


def test_names_from_outside_are_escaped() -> None:
    whole = page("hostile")
    assert whole.count("</script") == 2
    html = strip_program(whole)
    assert "<img" not in html
    assert '<script>alert("x")' not in html
    text = report_support.pull_request(report_support.hostile())
    # Text in backticks is unchanged.
    assert set(re.findall(r"<\w+", re.sub(r"`.*?`", "", text.partition("<details")[0]))) == {
        "<picture",
        "<source",
        "<img",
    }
    assert text.count("<img") == text.count("<picture") == 3
    assert "````yaml\na: </code></pre><script>\n```\n````" in text


def test_the_page_has_no_address_to_fetch() -> None:
    html = strip_program(page("usual"))
    assert not re.search(r"""(src|href)=["'](?!#)""", html)
    assert "@import" not in html
    assert "connect-src" not in html
    assert "default-src &#x27;none&#x27;" in html


def test_ten_thousand_trials_make_a_readable_page() -> None:
    judgement = report_support.large()
    names: list[str] = []

    def series(trial: str) -> object:
        names.append(trial)
        return judgement.results.series(trial)

    counted = replace(judgement, results=replace(judgement.results, series=series))  # type: ignore[arg-type]
    large = report_support.page(counted)
    assert len(large) < 4_000_000
    assert len(names) <= 60
    assert large.count("<tr") < 600
    assert "300 of 10,000 trials, invalid and suspect ones first: values.jsonl has all of them" in large
    # The 300 trials include the one suspect trial.
    assert ">000017<" in large
    assert "940 more variants not shown here" in large


def test_the_judgement_of_real_results_can_be_shown() -> None:
    judgement = judge_results(report_support.scaling().results)
    result = outline(report_support.page(judgement))
    assert answer.sentence(View(judgement)) in result.text
    assert {"comparison", "scaling", "throughput", "percentiles", "warnings"} <= set(result.ids)


def test_everything_is_written_beside_each_other(tmp_path: Path) -> None:
    written = write(report_support.import_pair(), tmp_path / "new")
    assert [path.relative_to(tmp_path / "new").as_posix() for path in written] == [
        "report.html",
        "report.md",
        "report/throughput.svg",
        "report/throughput.png",
        "report/headline.svg",
        "report/headline.png",
    ]
    assert written[2].read_text().startswith("<svg")
    assert "var(--" not in written[2].read_text()
    assert written[3].read_bytes().startswith(b"\x89PNG")
    text = written[1].read_text()
    assert all(path.relative_to(tmp_path / "new").as_posix() in text for path in written[2:])


def test_unwritable_report_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(LoadstoneError, match=r"cannot write the report to .*taken.*: (File exists|Not a directory)"):
        write(report_support.empty_judgement(), tmp_path / "taken")


def test_withheld_figure_is_hidden_for_single_trials() -> None:
    judgement = report_support.usual()
    rare = (variant_key({"system": "fjall", "workload": "a"}), "read.p99")
    cells = {**judgement.cells, rare: replace(judgement.cells[rare], withheld="n(1 − p) = 8 < 10")}
    result = trials.table(View(replace(judgement, cells=cells)))
    column = [head.title for head in result.columns].index("read p99")
    output = {row[0].text: row[column].text for row in result.groups[0].rows}
    assert {name for name, text in output.items() if text == "withheld"} == {
        f"fjall-a-{number}" for number in range(1, 7)
    }


def test_guarantees_fold_what_is_equal() -> None:
    view = View(report_support.usual())
    (section,) = [section for section in sections(view) if section.name == "promises"]
    tables = (*section.tables, *section.more)
    differing, common = ([row[0].text for group in table.groups for row in group.rows] for table in tables)
    total = len(differing) + len(common)
    assert section.lead == (f"{len(differing) - 1} of {total} facts differ; 1 is known for only some sides.",)
    assert "cache" in differing
    assert "writes survive" in common


@pytest.mark.parametrize(("copies", "folded"), [(1, False), (2, True)])
def test_equal_guarantees_are_folded_between_sides(copies: int, folded: bool) -> None:
    results = report_support.usual().results
    copied = [
        replace(trial, trial=f"{trial.trial}-{copy}", config={**trial.config, "copy": copy})
        for copy in range(copies)
        for trial in results.trials
        if trial.config["system"] == "lmdb"
    ]
    question = replace(results.question, by="copy", baseline=None)
    view = View(judge_results(replace(results, trials=copied, question=question, planned={}, series=lambda _: None)))
    (section,) = [section for section in sections(view) if section.name == "promises"]
    assert (bool(section.tables), bool(section.more)) == (not folded, folded)
    assert section.lead == (("No fact differs.",) if folded else ())


def test_checks_are_links_to_their_findings() -> None:
    whole = page("usual")
    links = set(re.findall(r'href="#(check-[^"]+)"', whole))
    assert {"check-errors-invalid", "check-not-steady-suspect"} <= links
    assert links <= set(outline(whole).ids)
    assert '<a href="#warnings">the warnings</a>' in whole


@pytest.mark.parametrize(
    ("store", "version", "text"),
    [("redis", "Redis 7.0.15", "store Redis 7.0.15"), ("lmdb", "0.9.31", "store lmdb 0.9.31")],
)
def test_subtitle_names_the_product_once(store: str, version: str, text: str) -> None:
    results = report_support.scaling().results
    trials = [replace(trial, facts={"store": store, "version": version}) for trial in results.trials]
    assert text in describe_setting(View(judge_results(replace(results, trials=trials))))
