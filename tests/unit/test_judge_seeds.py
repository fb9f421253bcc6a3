"""The tables of the hand-written reports: the judge finds their errors."""

from __future__ import annotations

import pytest

from conftest import FIXTURES
from loadstone.commands.show_results import judgement_document
from loadstone.importers.read import read_file
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.results.result_set import Question, ResultSet

IMPORTS = FIXTURES / "imports"


def judge_fixture(name: str) -> Judgement:
    """A fixture, imported with its facts file and judged."""
    return judge_results(ResultSet(name, [run.result for run in read_file(IMPORTS / name, {})]))


def test_littles_law_names_the_22_impossible_values() -> None:
    judgement = judge_fixture("hbase-read-only.csv")
    assert len(judgement.trials) == 34
    fired = {
        trial for trial, result in judgement.trials.items() if any(finding.check == "littles-law" for finding in result)
    }
    broken = {
        trial.trial
        for trial in judgement.results.trials
        if not 0.85
        <= trial.values["throughput"].value * trial.values["read.mean"].value / 1e9 / (trial.clients or 0)
        <= 1.05
    }
    assert fired == broken
    assert len(fired) == 22


def test_tables_of_three_repeats_allow_no_claim() -> None:
    judgement = judge_fixture("hbase-read-only.csv")
    assert {comparison.claim for comparison in judgement.comparisons} == {"impossible"}
    messages = {comparison.message for comparisons in judgement.variants.values() for comparison in comparisons}
    repeats = ["n=1: no interval", "n=2: no interval, no claim possible", "n=3: no interval, no claim possible"]
    assert sorted(messages) == repeats


def test_page_cache_as_disk_is_always_impossible() -> None:
    judgement = judge_fixture("hdfs-read.csv")
    results = [result for result in judgement.all_findings if result.check == "impossible"]
    limit = "MB/s, but the device's limit is 1,690.2 MB/s"
    assert [result.message for result in results] == [
        f"read at 1,803.99 {limit} (mean of 3 repeats)",
        f"read at 1,712.85 {limit}",
        f"read at 1,802.71 {limit}",
        f"read at 1,896.41 {limit}",
    ]
    for result in results:
        assert result.severity == Severity.INVALID
        assert result.hint.startswith("the data came from the page cache")
        assert result.hint.endswith("the link of 125 MB/s cannot have carried the data either")


SIDES_DIFFER = ("sides-differ", Severity.SUSPECT)


def test_five_data_nodes_against_three_are_unlike_hosts() -> None:
    judgement = judge_fixture("hdfs-read.csv")
    (results,) = [finding for finding in judgement.findings if (finding.check, finding.severity) == SIDES_DIFFER]
    assert results.message.startswith(
        "px and no-px differ in number of data nodes (5 against 3), speed of the device ("
    )
    assert all(results in finding.findings for finding in judgement.comparisons)


def test_only_the_impossible_point_is_refused() -> None:
    judgement = judge_fixture("hdfs-read.csv")
    claims = {dict(comparison.context)["hdfs_replication"]: comparison.claim for comparison in judgement.comparisons}
    assert claims == {1: "impossible", 2: "impossible", 3: "refused"}
    assert judgement.answer.endswith(
        "hdfs_replication=3 volume_replication=1: refused to rank no-px and px: "
        "read at 1,803.99 MB/s, but the device's limit is 1,690.2 MB/s (mean of 3 repeats) (impossible)"
    )


def test_single_runs_give_figures_and_no_claim() -> None:
    trials = [entry.result for entry in read_file(IMPORTS / "hbase-accelerated-writes.md", {"clients": 4})]
    question = Question(baseline="hbase-accelerated-writes-2", metrics=("throughput", "insert.p95"))
    judgement = judge_results(ResultSet("logs", trials, question))
    throughput, p95 = judgement.comparisons
    assert (throughput.claim, p95.claim) == ("impossible", "impossible")
    assert throughput.contender.estimate.value == pytest.approx(1770.70, abs=0.01)
    assert throughput.baseline.estimate.value == pytest.approx(388.46, abs=0.01)
    assert (p95.contender.estimate.value, p95.baseline.estimate.value) == (3_623_000, 18_751_000)
    assert judgement.answer == (
        "throughput is 1,770 op/s with hbase-accelerated-writes-1, 388 op/s with hbase-accelerated-writes-2"
        " (n=1: no interval, no claim possible, unchecked)"
    )
    assert judgement.further == (
        "insert p95 is 3.62 ms with hbase-accelerated-writes-1, 18.8 ms with hbase-accelerated-writes-2",
    )
    assert {entry.message for entries in judgement.variants.values() for entry in entries} == {"n=1: no interval"}


def test_cassandra_report_gives_estimates_without_its_percentiles() -> None:
    trials = [finding.result for finding in read_file(IMPORTS / "cassandra-scale.csv", {})]
    judgement = judge_results(ResultSet("report", trials, Question(by="clients", metrics=("throughput", "read.p95"))))
    knees = {
        (config["scenario"], config["operation"], config["rf"], config["cl"]): (
            curve.knee.reached,
            curve.knee.unclaimed,
        )
        for curve in judgement.curves
        for config in [dict(curve.context)]
    }
    assert len(knees) == 12
    # One run per load: the lowest load that reaches 95 % is an estimate, and no bracket is claimed.
    assert list(knees["1 dedicated", "write", 1, "LOCAL_ONE"]) == [800, "few-repeats"]
    assert {str(reason) for _, reason in knees.values()} == {"few-repeats"}
    assert "a knee requires 3 repeats of each load" in judgement.answer
    assert judgement.answer.startswith("no knee is named for all 12 curves: ")
    assert "of which 95 % is reached at 800 to 10,000 clients" in judgement.answer
    curve = judgement_document(judgement)["curves"][0]
    assert (curve["reached"], curve["lower"], curve["unclaimed"]) == (800, None, "few-repeats")
    ends = (".p50", ".p95", ".p99")
    withheld = [cell.withheld for (_, metric), cell in judgement.cells.items() if metric.endswith(ends)]
    assert set(withheld) == {"computed from the percentiles of the cassandra-stress processes"}
    assert {finding.message for finding in judgement.all_findings if finding.check == "impossible"} == {
        "the percentiles were computed from the percentiles of the cassandra-stress processes: "
        "they are not percentiles of the operations"
    }
