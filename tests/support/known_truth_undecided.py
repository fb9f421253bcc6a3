"""Scenarios in which the figures cannot decide, because of noise, few repeats or many questions; and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judge_support import asking, both, facts
from known_truth_decided import fast_and_slow_blocks, measure_figures
from known_truth_expected import (
    Case,
    Expectation,
    Judged,
    absent,
    expect_no_claim,
    expect_no_trust,
    expect_no_win,
    expect_overall,
    expect_undecided,
    favours,
    fires,
    says,
    silent,
    too_few,
    trusts_less,
    verdict,
    wins,
)
from known_truth_support import (
    SHAPE,
    change_system,
    collect_results,
    fail_share,
    faster,
    parts,
    scale_metrics,
    set_figures,
    simulate_results,
    trial,
    typical,
    with_parts,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from loadstone.results.union import join_results

FLAT = {"first": 1000.0, "second": 1000.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
TEN = {"rocksdb": 1000.0, "lmdb": 10_000.0}
DEVICE_READS = ("device.reads", "device.read", "device.read_per_operation")
# Matches a number of required repeats in any wording: "it would take n = 22", "n >= 22 repeats", "22 repeats".
N_IT_WOULD_TAKE = r"n ?[≥=>]+ ?[1-9]\d+|[1-9]\d+ (repeats|blocks) (would|\(\d)|would take"


def lucky_block() -> ResultSet:
    """Two equal stores; in one of six blocks the second was three times as fast."""
    return simulate_results(FLAT, noise=0.02, change=change_system("second", faster(3.0), 4))


def narrow_at_one_look() -> ResultSet:
    """Repeats should stop when two consecutive intervals are at most 5 % wide; here, only the last of nine is.

    With eight repeats the interval runs from the minimum to the maximum, 11 %. With nine it runs from the second
    smallest to the second largest value, which are 4 % apart (docs/concepts/statistics.md).
    """
    rates = (950.0, 1000.0, 1040.0, 999.0, 1001.0, 1000.5, 1060.0, 1002.0, 1000.2)
    results = [
        trial(system, block, rate * speed)
        for block, rate in enumerate(rates, 1)
        for system, speed in (("rocksdb", 1.0), ("lmdb", 4 / 3))
    ]
    planned = {f"{name}-{n}": {"system": name} for name in ("rocksdb", "lmdb") for n in range(1, 21)}
    return collect_results(results, planned=planned, question=asking(until=0.05, at_most=20, metrics=("throughput",)))


def repeat_lines() -> ResultSet:
    """Three blocks; a resumed run wrote each line again."""
    once = simulate_results(repeats=3)
    return replace(once, trials=[*once.trials, *once.trials])


def renumber_lines() -> ResultSet:
    """Three blocks whose lines were written again as three further blocks."""
    once = simulate_results(repeats=3)
    again = [replace(result, trial=f"{result.trial}-again", repeat=result.repeat + 3) for result in once.trials]
    series = once.series
    return replace(
        once, trials=[*once.trials, *again], planned={}, series=lambda name: series(name.removesuffix("-again"))
    )


def run_against_itself() -> ResultSet:
    """A result folder compared with a copy of itself."""
    results = replace(simulate_results({"rocksdb": 1000.0}, noise=0.02), name="monday")
    return join_results([results, replace(results, name="tuesday")])


def eleven_systems() -> ResultSet:
    """Ten contenders at 4 % noise; one seems 7 % faster: p = 0.02 alone, p = 0.17 as the best of ten."""
    systems = {"baseline": 1000.0, **{f"s{number}": 1000.0 for number in range(9)}, "lucky": 1070.0}
    return simulate_results(
        systems, noise=0.04, question=asking(by="system", baseline="baseline", metrics=("throughput",))
    )


def rank_figures(repeats: int) -> ResultSet:
    """Two runs at different times; in all of 25 figures, every repeat of one run beats every repeat of the other.

    The minimum p of Mann and Whitney's test is 2 ÷ C(12, 6) = 0.0022 at six repeats, and 25 times that is 0.054. At
    seven repeats it is 2 ÷ C(14, 7) = 0.00058.
    """
    results = simulate_results(
        {"rocksdb": 1000.0, "lmdb": 2000.0}, repeats=repeats, interleaved=False, change=with_parts(25, repeats, 0.01)
    )
    halved = change_system("lmdb", scale_metrics(parts(25), 0.5))
    trials = [halved(result) for result in results.trials]
    return replace(results, trials=trials, question=asking(metrics=("throughput", *parts(25))))


def exploratory(count: int) -> ResultSet:
    """One of many figures is 9 % lower on one side, at 4 % noise: p = 0.002 for this figure alone."""
    results = simulate_results(FLAT, noise=0.04, change=with_parts(count, noise=0.04))
    lower = change_system("second", scale_metrics(("engine.part07",), 1 / 1.1))
    trials = [lower(result) for result in results.trials]
    return replace(results, trials=trials, question=asking(metrics=("throughput", *parts(count))))


def sweep(rates: Mapping[int, float], noise: float = 0.01) -> ResultSet:
    """Six blocks of one system at several numbers of clients, with these rates."""
    results = []
    latencies = [f"{kind}.{name}" for kind in ("read", "all") for name in (*SHAPE, "mean")]
    factors = {clients: typical(6, noise, clients) for clients in rates}
    for block in range(1, 7):
        for clients, rate in rates.items():
            result = trial("lmdb", block, rate * factors[clients][block - 1])
            result = scale_metrics(latencies, clients / 10)(result)
            config: dict[str, Scalar] = {"system": "lmdb", "clients": clients}
            results.append(replace(result, trial=f"lmdb-{clients}-{block}", clients=clients, config=config))
    return collect_results(results, question=asking(by="clients", metrics=("throughput",)))


def knee(low: int, high: int) -> Expectation:
    """Expects that the answer or a table names this bracket of tested loads as the knee of the only curve."""
    return says(
        rf"(between|from) {low} (and|to) {high}\b|\[{low}, {high}\]|\b{low}( clients)? (to|–|and) {high} clients",
        ("curve",),
    )


def expect_no_knee() -> Expectation:
    """Expects that no knee is named."""
    return Expectation(
        "no knee", lambda judged: "knee between" not in judged.judgement.answer and peakless(judged), ("curve",)
    )


def unsure_of_the_knee() -> Expectation:
    """Expects that no knee is named, unless the verdict of the experiment is not valid."""
    return Expectation(
        "no knee, or not valid",
        lambda judged: expect_no_knee().holds(judged) or str(judged.judgement.verdict) != "valid",
        ("curve",),
    )


def peakless(judged: Judged) -> bool:
    """Whether the text for users states that there is no knee, or the answer does not mention a knee."""
    return "no knee" in judged.text or "knee" not in judged.judgement.answer


UNDECIDED = [
    # Noise.
    Case(
        "one store twice, five percent of noise, six blocks",
        lambda: simulate_results(FLAT, noise=0.05),
        (expect_undecided(), verdict("valid"), says(N_IT_WOULD_TAKE)),
    ),
    Case(
        "five percent faster, ten percent of noise, six blocks",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1050.0}, noise=0.1),
        (expect_undecided(), verdict("valid"), says(N_IT_WOULD_TAKE)),
    ),
    Case(
        "two percent faster, two percent of noise, six blocks",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1020.0}, noise=0.02),
        (expect_undecided(), verdict("valid")),
    ),
    Case(
        "five percent faster on a host with two clock speeds, in two runs",
        lambda: replace(fast_and_slow_blocks(), interleaved=False),
        (expect_undecided(), fires("sides-differ", "unchecked"), verdict("unchecked")),
    ),
    Case(
        "one store twice, one trial ten times slower",
        lambda: simulate_results(FLAT, noise=0.02, change=change_system("second", faster(0.1), 2)),
        (expect_no_claim(), verdict("valid")),
    ),
    Case("one store twice, one block three times faster", lucky_block, (expect_no_claim(), verdict("valid"))),
    Case(
        "the interval should be two percent wide and is much wider after all repeats",
        lambda: simulate_results(noise=0.05, question=asking(until=0.02, at_most=6)),
        (fires("noisy", "suspect"), verdict("suspect"), favours("lmdb")),
    ),
    Case(
        "repeats stopped at the only evaluation with a narrow interval",
        narrow_at_one_look,
        # Either of two checks may fire: repeats are missing, or the interval is wider than requested.
        (verdict("suspect"), favours("lmdb")),
    ),
    # Few repeats.
    Case(
        "one repeat, twice as fast",
        lambda: simulate_results(TWICE, 1),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "two repeats, twice as fast",
        lambda: simulate_results(TWICE, 2),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "three repeats, twice as fast",
        lambda: simulate_results(TWICE, 3),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "five repeats, ten times faster",
        lambda: simulate_results(TEN, 5),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "six repeats, ten times faster",
        lambda: simulate_results(TEN, 6),
        (wins("lmdb", 10.0), silent("too-few-samples"), verdict("valid")),
    ),
    Case(
        "three blocks whose lines were written twice by a resumed run",
        repeat_lines,
        (expect_no_claim(), verdict("valid")),
    ),
    Case(
        "three blocks whose lines were counted as three further blocks",
        renumber_lines,
        (expect_no_claim(), verdict("invalid")),
    ),
    Case("a run compared with a copy of itself", run_against_itself, (expect_no_claim(), verdict("invalid"))),
    Case(
        "six blocks, half of which failed on one side",
        lambda: simulate_results(TWICE, change=change_system("lmdb", fail_share(0.5), 1, 2, 3)),
        (expect_no_claim(), fires("errors", "invalid"), verdict("invalid")),
    ),
    Case(
        "a p99.9 of 6,000 operations: six of them are slower",
        lambda: simulate_results(
            {"rocksdb": 50.0, "lmdb": 100.0}, question=asking(metrics=("throughput", "read.p99.9"))
        ),
        (expect_no_claim(), fires("too-few-samples", "withheld"), absent(), expect_overall("valid")),
        metric="read.p99.9",
    ),
    # Many questions.
    Case(
        "a tenth faster in throughput, after 24 equal figures",
        lambda: measure_figures(24),
        (expect_undecided(), says("exploratory"), verdict("valid")),
        metric=parts(24)[-1],
    ),
    Case(
        "one of 25 exploratory figures is ten percent lower (p = 0.002)",
        lambda: exploratory(25),
        (expect_undecided(), says("exploratory"), verdict("valid")),
        metric="engine.part07",
    ),
    Case(
        "the luckiest of ten contenders that differ only by noise",
        eleven_systems,
        (expect_no_claim(), verdict("valid")),
        contender="lucky",
    ),
    Case(
        "25 figures after the first, six repeats in each of two runs: no test can decide them",
        lambda: rank_figures(6),
        (expect_no_claim(), says(r"n ?= ?6 cannot decide \d+ tests; n ?(≥|>=) ?7 can"), verdict("unchecked")),
        metric="engine.part03",
    ),
    Case(
        "the first of these figures is nevertheless decided",
        lambda: rank_figures(6),
        (wins("lmdb", 2.0), verdict("unchecked")),
    ),
    Case(
        "25 figures after the first, seven repeats in each of two runs: all are decided",
        lambda: rank_figures(7),
        (wins("lmdb", 0.5), verdict("unchecked")),
        metric="engine.part03",
    ),
    # Data without a time series.
    Case(
        "a container hides other work on the host",
        lambda: simulate_results(change=set_figures(without=("cpu.steal", "cpu.others", "io.others"))),
        (wins("lmdb", 4 / 3), verdict("valid"), says(r"\d+ of \d+ checks ran")),
    ),
    Case(
        "trials by Loadstone without figures on the clock, on errors or on lateness",
        lambda: simulate_results(
            change=both(
                facts(engine="0.1.0"),
                set_figures(without=("clock.jumps", "errors", "late.generator", "late.client", "driver")),
            )
        ),
        (verdict("suspect"), favours("lmdb")),
    ),
    Case(
        "embedded trials by Loadstone without the probe of its cost: the engine's share is unknown",
        lambda: simulate_results(change=set_figures(without=("driver",))),
        (trusts_less(), expect_no_win("rocksdb"), verdict("suspect")),
    ),
    Case(
        "trials by Loadstone without a count of failures",
        lambda: simulate_results(change=lambda result: replace(set_figures(without=("errors",))(result), statuses={})),
        (trusts_less(), expect_no_win("rocksdb"), verdict("suspect")),
    ),
    Case(
        "trials by Loadstone, with a claim about the device but without its reads",
        lambda: simulate_results(change=set_figures(without=DEVICE_READS), question=asking(claims="device")),
        (expect_no_trust(), verdict("suspect", "invalid")),
    ),
    # Curves: the lowest load that reaches 95 % of the plateau.
    Case(
        "throughput doubles up to 8 clients and stays",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 7900, 16: 8000, 32: 8000, 64: 8000}),
        (knee(4, 8), expect_overall("valid")),
    ),
    Case(
        "throughput collapses beyond 16 clients to an eighth",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 7000, 16: 12_000, 32: 3000, 64: 1500}),
        (knee(8, 16), expect_overall("valid")),
    ),
    Case(
        "throughput has a dent at 8 clients and grows up to 32",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 3000, 16: 8000, 32: 16_000, 64: 16_000, 128: 16_000}),
        (knee(16, 32), expect_overall("valid")),
    ),
    Case(
        "throughput still doubles at the highest number of clients",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 8000, 16: 16_000, 32: 32_000}),
        (expect_no_knee(), expect_overall("valid")),
    ),
]
