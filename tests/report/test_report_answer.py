"""The first screen of judged results: a short sentence, and the table of the figures behind it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import report_support
from judge_support import Change, asking, experiment, facts, rocksdb, set_figures, sound
from loadstone.judge.finding import UNKNOWN_OF_BOTH, Finding, Severity
from loadstone.judge.judge import judge_results
from loadstone.report import answer
from loadstone.report.markdown import document
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet, variant_key
from loadstone.results.trial_result import Scalar, TrialResult

METRICS = ("throughput", "read.p99")


def compare(change: Change | None = None) -> View:
    """Compares lmdb and rocksdb over six repeats; `change` alters each trial."""
    return View(judge_results(experiment(change, question=asking(by="system", baseline="rocksdb", metrics=METRICS))))


def table_texts(view: View) -> list[list[str]]:
    """The cells of the answer's table as text: text, note, verdict."""
    content = answer.table(view)
    assert content is not None
    return [
        [" ".join(str(part) for part in (cell.text, cell.note, cell.verdict) if part not in ("", None)) for cell in row]
        for group in content.groups
        for row in group.rows
    ]


def test_sentence_leaves_figures_to_the_table() -> None:
    view = compare()
    assert answer.sentence(view) == "lmdb holds 1.333× the throughput of rocksdb"
    assert "95 % interval" in answer.sentence(view, with_figures=True)
    throughput, latency = table_texts(view)
    assert throughput[0] == "throughput"
    assert throughput[3].startswith("1.333× 1.3")
    assert throughput[4] == "lmdb is better valid"
    assert latency[0] == "read p99"
    assert latency[4] == "no difference that matters valid"


def test_table_has_the_medians_of_the_comparison() -> None:
    view = compare()
    cells = {(dict(key)["system"], metric): view.figure(cell) for (key, metric), cell in view.judgement.cells.items()}
    for metric, row in zip(METRICS, table_texts(view), strict=True):
        assert row[1:3] == [cells["rocksdb", metric], cells["lmdb", metric]]


def test_worse_contender_makes_the_baseline_better() -> None:
    view = compare(rocksdb(set_figures(throughput=5e6)))
    assert table_texts(view)[0][4].startswith("rocksdb is better")


def test_refused_comparison_has_no_difference() -> None:
    view = compare(rocksdb(set_figures(errors=50_000)))
    row = table_texts(view)[0]
    assert row[3] == "–"
    assert "not ranked" in row[4]


def compare_several(names: str, workloads: str = "A", change: Change = lambda trial: trial) -> View:
    """Six repeats of some systems on some workloads; each system is a tenth faster than the preceding system."""
    trials = [
        change(
            replace(
                sound("lmdb", repeat, (1 + at / 10) * (1 + 0.001 * repeat * at)),
                trial=f"{name}-{workload}-{repeat}",
                config={"system": name, "workload": workload},
            )
        )
        for repeat in range(1, 7)
        for workload in workloads
        for at, name in enumerate(names)
    ]
    question = asking(by="system", baseline=names[0], metrics=METRICS)
    return View(judge_results(ResultSet("crafted", trials, question, interleaved=True)))


def test_condition_of_a_claim_is_in_the_table() -> None:
    judgement = compare().judgement
    message = f"{UNKNOWN_OF_BOTH}number of records"
    finding = Finding("sides-differ", Severity.UNCHECKED, message, "", ())
    comparisons = [replace(pair, findings=(*pair.findings, finding)) for pair in judgement.comparisons]
    row = table_texts(View(replace(judgement, comparisons=comparisons)))[0]
    assert row[4] == "lmdb is better if number of records were equal unchecked"


def test_zero_baseline_has_no_ratio() -> None:
    view = compare(rocksdb(set_figures(read__p99=0.0)))
    assert "at least" not in " ".join(cell for row in table_texts(view) for cell in row)


def test_verdict_of_each_contender_is_stated() -> None:
    def slow(trial: TrialResult) -> TrialResult:
        return set_figures(errors=50_000)(trial) if trial.config["system"] == "c" else trial

    row = table_texts(compare_several("abc", change=slow))[0]
    assert row[2].endswith(", valid")
    assert "not ranked" in row[3]
    assert row[3].endswith(", invalid")


def test_several_contenders_have_a_column_each() -> None:
    view = compare_several("abc")
    content = answer.table(view)
    assert content is not None
    assert [column.title for column in content.columns] == ["metric", "a", "b", "c", "verdict"]
    throughput = table_texts(view)[0]
    assert re.fullmatch(r"1,\d{3} op/s 1\.10\d×, 1\.10\d–1\.10\d", throughput[2])
    assert re.fullmatch(r"1,\d{3} op/s 1\.20\d×, 1\.20\d–1\.21\d", throughput[3])
    assert throughput[4] == "valid"


def test_many_contexts_share_the_rows_of_further_metrics() -> None:
    view = compare_several("ab", "ABCDEFG")
    rows = table_texts(view)
    assert [row[0] for row in rows] == [*(f"throughput · workload {name}" for name in "ABCDEFG"), "read p99"]
    assert rows[-1][4] == "no difference that matters in all 7 comparisons valid"


def test_many_contenders_keep_the_long_answer() -> None:
    view = compare_several("abcdef")
    assert answer.table(view) is None
    assert answer.sentence(view, with_figures=True) == answer.sentence(view)


def test_few_repeats_keep_their_figures_in_the_sentence() -> None:
    results = experiment(repeats=2, question=asking(by="system", baseline="rocksdb", metrics=METRICS))
    view = View(judge_results(results))
    assert answer.table(view) is None
    assert "op/s with" in answer.sentence(view)


def search_view(met: dict[int, int], change: Change | None = None) -> View:
    """A search with six trials of each number of clients; `met` states how many of these trials met the objective of 20
    ms."""

    def run(clients: int, repeat: int) -> TrialResult:
        p99 = 1.2e7 if repeat <= met[clients] else 4e7
        trial = set_figures(read__p99=p99)(replace(sound("lmdb", repeat), clients=clients))
        trial = replace(trial, trial=f"{clients}-{repeat}", config={"clients": clients})
        return change(trial) if change else trial

    find: dict[str, Scalar | None] = {
        "max": "throughput",
        "such_that": "read.p99 < 20ms",
        "over": "clients",
        "from": 1,
        "to": 8,
    }
    trials = [run(clients, repeat) for clients in met for repeat in range(1, 7)]
    return View(judge_results(ResultSet("searched", trials, Question(at_least=3, at_most=6, find=find))))


def test_search_shows_loads_from_answer_to_bracket() -> None:
    view = search_view({1: 6, 2: 6, 3: 4, 4: 0, 8: 0})
    content = answer.table(view)
    assert content is not None
    assert [column.title for column in content.columns] == ["clients", "read p99", "throughput", "objective"]
    ((title, rows),) = [(group.title, group.rows) for group in content.groups]
    assert title == ""
    assert [[cell.text for cell in row] for row in rows] == [
        ["3 clients", "12.0 ms", "1,000 op/s", "met in 4 of 6 trials, a majority"],
        ["4 clients", "40.0 ms", "1,000 op/s", "not met in any of 6 trials"],
    ]
    assert answer.sentence(view).startswith("read.p99 < 20ms holds up to 3 clients (met in 4 of 6 trials, a majority; ")
    assert content.notes[1:] == ("The objective holds at a load if most of the judged trials meet it",)


@pytest.mark.parametrize("met", [{1: 0, 2: 0}, {1: 6, 2: 6, 4: 6, 8: 6}])
def test_search_without_a_limit_keeps_its_sentence(met: dict[int, int]) -> None:
    view = search_view(met)
    assert answer.table(view) is None
    assert answer.sentence(view).endswith("trials")


def test_search_states_a_higher_throughput_below_its_answer() -> None:
    view = search_view(
        {1: 6, 2: 6, 3: 4, 4: 0, 8: 0}, lambda trial: set_figures(throughput=3000 / (trial.clients or 1))(trial)
    )
    assert "throughput is highest at 1 client, 3,000 op/s; at the answer, it is 1,000 op/s" in answer.remarks(view)


def test_short_sweep_has_a_row_for_each_load() -> None:
    view = View(judge_results(report_support.scaling().results))
    assert answer.sentence(view) == (
        "Throughput is 1.53× to 4.05× as high with scylla as with cassandra, at 1 to 64 clients; throughput of"
        " cassandra peaks at 32 clients and then falls, scylla still rises at 64 clients"
    )
    *throughput, latency = table_texts(view)
    medians = {key: view.figure(cell) for (key, metric), cell in view.judgement.cells.items() if metric == "throughput"}
    assert [row[0] for row in throughput] == [f"throughput · clients {2**at}" for at in range(7)]
    for at, row in enumerate(throughput):
        sides = [variant_key({"system": system, "clients": 2**at}) for system in ("cassandra", "scylla")]
        assert row[1:3] == [medians[side] for side in sides]
        assert row[4] == "scylla is better valid"
    assert latency[0] == "read p99"
    assert latency[4].endswith("in all 7 comparisons valid")
    assert any("55,600 op/s) is reached between 16 and 32 clients" in remark for remark in answer.remarks(view))


def test_sweep_names_loads_without_a_result() -> None:
    results = report_support.scaling().results

    def fail_last(trial: TrialResult) -> TrialResult:
        is_last = trial.config == {"system": "scylla", "clients": 64}
        return replace(trial, end="failed", values={}) if is_last else trial

    failing = judge_results(replace(results, trials=[fail_last(trial) for trial in results.trials]))
    assert "claimed at 6 of 6 loads, valid, not compared at 64 clients)" in failing.answer


def test_text_for_pull_requests_has_the_table() -> None:
    text = document(compare(), [])
    sentence, table = text.index("**lmdb holds 1.333×"), text.index("| metric | rocksdb | lmdb |")
    assert sentence < table


def test_verdict_names_every_check_behind_it() -> None:
    disturbed, upgraded = set_figures(cpu__others=0.5), rocksdb(facts(kernel="6.2.0"))
    view = View(judge_results(experiment(lambda trial: upgraded(disturbed(trial)))))
    text = answer.describe_verdict(view)
    assert "interference" in text
    assert "sides-differ" in text
    assert text.count("Also found: ") == 1
