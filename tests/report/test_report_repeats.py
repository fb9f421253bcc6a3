"""The table of repeats has the same repeats, means, variations and differences as the hand-written report on HDFS and
Portworx."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from conftest import FIXTURES
from loadstone.importers.read import read_file
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.report.terminal.repeats import repeats
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value

SEED = FIXTURES / "imports" / "hdfs-read.csv"
METRIC = "dfsio.task_throughput"
# The report's table "TestDFSIO Write throughput", MB/s, by storage and HDFS replication.
WRITES = {
    ("no-px", 1): [478.44, 454.89, 479.74],
    ("no-px", 2): [37.44, 37.18, 37.34],
    ("no-px", 3): [36.63, 36.62, 36.72],
    ("px", 1): [179.93, 185.7, 180.17],
    ("px", 2): [53.36, 53.62, 52.06],
    ("px", 3): [31.37, 30.78, 31.3],
}


def judge_repeats(rates: Mapping[tuple[str, int], Sequence[float]]) -> Judgement:
    """The judgement of these repeats, with the storage without Portworx as the baseline."""
    trials = [
        TrialResult(
            trial=f"{storage}-{copies}-{repeat}",
            config={"storage": storage, "replication": copies},
            repeat=repeat,
            order=repeat,
            values=values_by_metric(Value(METRIC, rate * 1e6, "B/s", 4)),
        )
        for (storage, copies), result in rates.items()
        for repeat, rate in enumerate(result, 1)
    ]
    question = Question(by="storage", baseline="no-px", metrics=(METRIC,), repeats=True)
    return judge_results(ResultSet("report", trials, question, interleaved=True))


def read_table(judgement: Judgement, metric: str = METRIC) -> tuple[list[str], dict[tuple[str, ...], dict[str, str]]]:
    """The titles of the columns, and the rows by storage and replication."""
    table = repeats(judgement, metric)
    assert table is not None
    titles = [str(column.header) for column in table.columns]
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    return titles, {row[:2]: dict(zip(titles, row, strict=True)) for row in rows}


# The report's "Comparison of Px vs. No Px", and the variation of its repeats.
COMPARISON = {
    ("no-px", "1"): ("471.0 MB/s", "± 3.4%", ""),
    ("no-px", "2"): ("37.32 MB/s", "± 0.4%", ""),
    ("no-px", "3"): ("36.66 MB/s", "± 0.2%", ""),
    ("px", "1"): ("181.9 MB/s", "± 2.1%", "-61.37%"),
    ("px", "2"): ("53.01 MB/s", "± 1.8%", "+42.05%"),
    ("px", "3"): ("31.15 MB/s", "± 1.2%", "-15.02%"),
}


def test_the_figures_are_those_of_the_report() -> None:
    titles, rows = read_table(judge_repeats(WRITES))
    assert titles[2:] == ["1", "2", "3", "average", "variation", "difference", "evidence", "verdict"]
    assert {key: (row["average"], row["variation"], row["difference"]) for key, row in rows.items()} == COMPARISON
    assert [rows["px", "1"][number] for number in "123"] == ["179.9 MB/s", "185.7 MB/s", "180.2 MB/s"]
    # Three repeats allow no claim, because they have no interval.
    assert {row["evidence"] for row in rows.values()} == {"", "61 % lower (n=3)", "1.42× (n=3)", "15 % lower (n=3)"}


def test_the_evidence_of_six_repeats_is_an_interval() -> None:
    six = {key: [*rates, *(rate * 1.001 for rate in rates)] for key, rates in WRITES.items()}
    _, rows = read_table(judge_repeats(six))
    assert rows["px", "1"]["difference"] == "-61.37%"
    assert re.fullmatch(r"61 % lower \(60–63 %\) p<0.001 n=6", rows["px", "1"]["evidence"])
    assert re.fullmatch(r"1\.42× \(1\.40–1\.44\) p<0.001 n=6", rows["px", "2"]["evidence"])


def test_missing_repeat_and_missing_baseline_are_blank() -> None:
    judgement = judge_repeats({("no-px", 1): [100.0, 90.0], ("px", 1): [50.0], ("px", 2): [70.0, 60.0]})
    _, rows = read_table(judgement)
    assert [rows["px", "1"][name] for name in ("1", "2", "difference")] == ["50.00 MB/s", "", "-47.37%"]
    assert [rows["px", "2"][name] for name in ("average", "difference", "evidence")] == ["65.00 MB/s", "", ""]
    assert repeats(judgement, "read.p99") is None


def test_the_verdict_is_that_of_the_worst_trial() -> None:
    """Three reads average 1,803.99 MB/s, which a device of 1,690.2 MB/s cannot deliver."""
    judgement = judge_results(ResultSet("seed", [run.result for run in read_file(SEED, {})]))
    table = repeats(judgement, "read.bandwidth")
    assert table is not None
    entries = {column.header: [str(cell) for cell in column.cells] for column in table.columns}
    invalid = [
        average for average, verdict in zip(entries["average"], entries["verdict"], strict=True) if verdict == "invalid"
    ]
    assert invalid == ["1.804 GB/s"]
