"""Cases designed to make the table of scenarios wrong: failures, drift, unknown facts, runs on different days, searches
with failing servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from drift_support import THROUGHPUT, always, line, simulate_drift
from judge_support import Change, asking, facts, set_figures
from known_truth_expected import Case, expect_no_trust, expect_overall, favours, fires, says, unsure, verdict, wins
from known_truth_imports import compare_files
from known_truth_support import (
    CLIENTS,
    SHAPE,
    change_system,
    collect_results,
    faster,
    make_series,
    scale_metrics,
    simulate_results,
    trial,
)
from liar_cases_runs import LATENCIES, begin_in_blocks, daily
from liar_support import (
    DAY_NS,
    HOUR_NS,
    KNOWN,
    START_NS,
    alternating,
    logs,
    noise,
    set_times,
    side,
    ycsb,
)
from loadstone.engine.events import Note
from loadstone.judge.checks import attempts
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, Series, TrialResult

P99 = "read.p99"
TAILS = [f"read.{name}" for name in SHAPE]


OK: tuple[str, ...] = ()
SLOW = ("slow",) * 3


def crash(trial_of: TrialResult) -> TrialResult:
    """A trial whose server exited before it had a figure."""
    return replace(trial_of, end="failed", values={}, statuses={})


def series_of(trial_of: TrialResult) -> Series | None:
    """The time series of a trial that has figures."""
    return make_series(trial_of) if trial_of.values else None


def retry(count: int) -> Change:
    """Adds failed attempts before a trial."""
    return lambda trial_of: replace(trial_of, failures=("connection refused",) * count)


def above_limit(change: Change) -> Change:
    """Applies a change to the trials at loads above the answer of the search LIMITED."""
    return lambda trial_of: change(trial_of) if (trial_of.clients or 0) > 4 else trial_of


def search_clients(
    outcomes: Mapping[int, Sequence[str]], repeats: int = 3, change: Change = lambda sample: sample
) -> ResultSet:
    """A search over clients; `outcomes` has the end of each repeat at a load: `ok`, `slow`, `exited` and so on."""
    results: list[TrialResult] = []
    for load, ends in outcomes.items():
        for repeat, end in enumerate(ends or ("ok",) * repeats, 1):
            factor = noise((load, end), len(ends or OK) or repeats)[repeat - 1]
            sample = trial("lmdb", repeat, load * factor * (50 if end == "slow" else 1000))
            # By Little's law, latencies grow with the number of clients.
            sample = scale_metrics(LATENCIES, load / CLIENTS)(sample)
            sample = set_figures(device__reads=0, device__read=0, device__read_per_operation=0)(sample)
            sample = replace(
                sample, trial=f"c{load}-{repeat}", clients=load, config={"system": "lmdb", "clients": load}
            )
            if end == "exited":
                sample = replace(sample, notes=(Note(attempts.DIED, "the server lmdb is not running", ""),))
            if end == "failed":
                sample = crash(sample)
            if end == "retried":
                sample = replace(sample, failures=("connection refused",))
            sample = change(facts(record_bytes=1000)(sample))
            results.append(replace(sample, order=len(results)))
    find: dict[str, Scalar | None] = {"such_that": "p99 < 10ms", "over": "clients", "from": 1, "to": max(outcomes)}
    question = replace(asking(), find=find, at_least=3, at_most=6)
    return collect_results(results, series_of, question=question, interleaved=False)


LIMIT = says("holds up to 4 clients")
LIMITED: Mapping[int, Sequence[str]] = {1: OK, 2: OK, 4: OK, 8: SLOW, 6: SLOW, 5: SLOW}


def state_side(known: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> ResultSet:
    """Alternating YCSB logs that differ by a factor of 1.3; each side states some facts."""
    return compare_files(
        side("plain", ycsb(1000, "a"), begins=alternating(0), known=known),
        side("tuned", ycsb(1300, "b"), begins=alternating(1), known=other),
    )


def state_without(*names: str) -> dict[str, Scalar]:
    """The stated facts without these names."""
    return {name: value for name, value in KNOWN.items() if name not in names}


SCENARIOS = [
    # Failures as the worst figure.
    Case(
        "four percent faster, but two of ten repeats crashed",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1040.0}, 10, 0.02, change=change_system("lmdb", crash, 3, 7), minute=series_of
        ),
        (expect_no_trust(),),
    ),
    Case(
        "half the p99, but three of nine repeats crashed",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1000.0},
            9,
            change=lambda trial_of: change_system("lmdb", crash, 2, 5, 8)(
                change_system("lmdb", scale_metrics(TAILS, 0.5), 1, 3, 4, 6, 7, 9)(trial_of)
            ),
            question=asking(metrics=(P99,)),
            minute=series_of,
        ),
        (expect_no_trust(),),
        metric=P99,
    ),
    Case(
        "the slower side crashed twice: the faster side wins even more clearly",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, 10, change=change_system("rocksdb", crash, 3, 7), minute=series_of
        ),
        (favours("lmdb"),),
    ),
    Case(
        "twice as fast after one failed attempt of ten",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 2000.0}, 10, change=change_system("lmdb", retry(1), 4)),
        (favours("lmdb"), fires("retried", "suspect")),
    ),
    Case(
        "equal, but one side failed before it could be repeated",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1000.0}, 20, 0.002, change=change_system("lmdb", retry(2), 4, 9, 15)
        ),
        (unsure(),),
    ),
    # Drift.
    Case(
        "eight percent faster, but that side alone speeds up by 40 percent within each window",
        lambda: simulate_drift({"rocksdb": 1000.0, "lmdb": 1080.0}, always(lmdb=line(0.8, 1.2)), question=THROUGHPUT),
        (expect_no_trust(), fires("not-steady", "suspect")),
    ),
    Case(
        "three times as fast, and both sides slow down by eight percent within each window, which may continue",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 3000.0},
            always(rocksdb=line(1.04, 0.96), lmdb=line(1.04, 0.96)),
            question=THROUGHPUT,
        ),
        (favours("lmdb"), verdict("suspect"), fires("not-steady", "suspect")),
    ),
    Case(
        "two percent faster on a host that slows down by a fifth during the run",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1020.0}, 10, 0.002, drift=0.2),
        (wins("lmdb", 1.02, 0.01), verdict("valid")),
    ),
    Case(
        "five percent faster, and other work used a tenth of the processors in the slower side's repeats only",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1050.0}, 8, 0.003, change=change_system("rocksdb", set_figures(cpu__others=0.1))
        ),
        (expect_no_trust(),),
    ),
    Case(
        "one repeat of each side disturbed, 1.5 times as fast",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            8,
            change=lambda trial_of: (
                set_figures(cpu__steal=0.2)(faster(0.8)(trial_of))
                if trial_of.trial in ("rocksdb-3", "lmdb-6")
                else trial_of
            ),
        ),
        (favours("lmdb"), verdict("valid")),
    ),
    # A fact that is unknown on one side.
    Case(
        "the number of records is stated for one side only",
        lambda: state_side(KNOWN, state_without("records")),
        (favours("tuned"), verdict("unchecked"), says("if .*number of records")),
    ),
    Case(
        "one side states uniform requests, and the other nothing",
        lambda: state_side({**KNOWN, "distribution": "uniform"}, state_without("distribution")),
        (verdict("unchecked"), says("if .*distribution of requests")),
    ),
    Case(
        "one side states an unknown size of a record",
        lambda: state_side(KNOWN, {**KNOWN, "record_bytes": "unknown"}),
        (verdict("unchecked"), says("if .*record size")),
    ),
    Case(
        "one side states its durability",
        lambda: state_side({**KNOWN, "durability": "device"}, KNOWN),
        (unsure(), verdict("suspect", "invalid"), says("durability")),
    ),
    Case(
        "a fact of one side that no comparison needs",
        lambda: state_side({**KNOWN, "operator": "night shift"}, KNOWN),
        (favours("tuned"), verdict("valid")),
    ),
    # Runs by day.
    Case(
        "three alternating runs of each of two commits",
        lambda: daily((0, 2, 4), (1, 3, 5), 1.1),
        (expect_no_trust(), verdict("suspect"), says("6 alternating runs")),
    ),
    Case(
        "three days of one side, six of the other, three more of the first",
        lambda: daily((0, 1, 2, 9, 10, 11), (3, 4, 5, 6, 7, 8), 1.1),
        (expect_no_trust(), verdict("suspect")),
    ),
    Case(
        "alternating logs, one without a time",
        lambda: compare_files(
            side("plain", ycsb(1000, "a"), begins=alternating(0), known=KNOWN),
            side("tuned", ycsb(1100, "b"), known=KNOWN),
        ),
        (verdict("unchecked"), says("order of the runs")),
    ),
    Case(
        "one run of six files passed as six runs of each side",
        lambda: logs(ycsb(1000, "a", n=1) * 6, ycsb(1300, "b", n=1) * 6, known=KNOWN),
        (unsure(), verdict("invalid")),
    ),
    Case(
        "the last block of one side ran on the next day",
        lambda: set_times(
            simulate_results({"rocksdb": 1000.0, "lmdb": 1200.0}, 8),
            lambda trial_of: begin_in_blocks(trial_of) + (DAY_NS if trial_of.repeat == 8 else 0),
        ),
        (wins("lmdb", 1.2), verdict("valid")),
    ),
    Case(
        "blocks whose second halves ran in the night",
        lambda: set_times(
            simulate_results({"rocksdb": 1000.0, "lmdb": 1050.0}, 8),
            lambda trial_of: (
                START_NS + trial_of.repeat * HOUR_NS // 60 + 12 * HOUR_NS * (trial_of.config["system"] == "lmdb")
            ),
        ),
        (expect_no_trust(), verdict("suspect")),
    ),
    # Searches with failing servers.
    Case(
        "a search whose server exits in one of six trials at the highest load",
        lambda: search_clients({1: OK, 2: OK, 4: OK, 8: ("ok",) * 5 + ("exited",), 6: SLOW, 5: SLOW}),
        (LIMIT,),
    ),
    Case(
        "a search whose server exits at every load from 8 clients on",
        lambda: search_clients({1: OK, 2: OK, 4: OK, 8: ("exited",) * 3, 5: OK, 6: ("exited",) * 3}),
        (says("holds up to 5 clients"), expect_overall("valid")),
    ),
    Case(
        "a search in which the highest load needed a second attempt",
        lambda: search_clients({1: OK, 2: OK, 4: OK, 8: ("ok", "retried", "ok"), 6: SLOW, 5: SLOW}),
        (LIMIT,),
    ),
    Case(
        "a search whose highest load never ran",
        lambda: search_clients({1: OK, 2: OK, 4: OK, 8: ("failed",) * 3}),
        (says("holds at 4 clients"), says("8 clients is invalid")),
    ),
    Case(
        "a search without a failure",
        lambda: search_clients({1: OK, 2: OK, 4: OK, 8: SLOW, 16: SLOW, 6: SLOW, 5: OK}),
        (says("holds up to 5 clients"), expect_overall("valid")),
    ),
    # Searches whose answer rests on disturbed or unequal trials.
    Case(
        "a search whose first load cannot be judged",
        lambda: search_clients({1: OK, 2: OK}, change=set_figures(clock__jumps=1)),
        (says("was not found"), expect_overall("invalid")),
    ),
    Case(
        "a search whose lowest load missed the objective",
        lambda: search_clients({1: SLOW, 2: SLOW}),
        (says("does not hold even at 1 client"), expect_overall("valid")),
    ),
    Case(
        "a search whose lowest load missed the objective while other machines used the host",
        lambda: search_clients({1: SLOW, 2: SLOW}, change=set_figures(cpu__steal=0.4)),
        (says("does not hold even at 1 client"), expect_overall("suspect")),
    ),
    Case(
        "a search in which other machines used the host at the load above the answer",
        lambda: search_clients(LIMITED, change=above_limit(set_figures(cpu__steal=0.4))),
        (LIMIT, expect_overall("suspect")),
    ),
    Case(
        "a search with larger records above the answer",
        lambda: search_clients(LIMITED, change=above_limit(facts(record_bytes=10_000))),
        (LIMIT, expect_overall("suspect"), says(r"record size \(1\.00 kB against 10\.0 kB\)")),
    ),
    Case(
        "a search with larger records in some repeats of the answer",
        lambda: search_clients(LIMITED, change=lambda of: facts(record_bytes=1000 * (1 + (of.repeat == 2)))(of)),
        (LIMIT, expect_overall("suspect"), says("the record size changed between repeats")),
    ),
    Case(
        "a search with more connections at higher loads",
        lambda: search_clients(LIMITED, change=lambda of: facts(connections=of.clients)(of)),
        (LIMIT, expect_overall("valid")),
    ),
]
