"""Worlds in which the figures cannot decide, because of noise, of few repeats or of many questions; and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judge_support import asking, both, facts
from known_truth_expected import (
    Case,
    Expectation,
    Judged,
    absent,
    favours,
    fires,
    no_claim,
    not_for,
    not_trusted,
    says,
    silent,
    too_few,
    trusts_less,
    undecided,
    verdict,
    whole,
    wins,
)
from known_truth_given import fast_and_slow_blocks, many_figures
from known_truth_support import (
    SHAPE,
    failed,
    faster,
    given,
    of_trials,
    on,
    parts,
    scaled,
    trial,
    typical,
    with_parts,
    world,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from loadstone.results.union import join_results

FLAT = {"first": 1000.0, "second": 1000.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
TEN = {"rocksdb": 1000.0, "lmdb": 10_000.0}
DEVICE_READS = ("device.reads", "device.read", "device.read_per_operation")
# "it would take n = 22", "n >= 22 repeats", "22 repeats": the words are free, the number is not.
N_IT_WOULD_TAKE = r"n ?[≥=>]+ ?[1-9]\d+|[1-9]\d+ (repeats|blocks) would|would take"


def one_lucky_block() -> ResultSet:
    """Two equal stores; in one block of six something made lmdb three times as fast."""
    return world(FLAT, noise=0.02, spoil=on("second", faster(3.0), 4))


def narrow_at_one_look() -> ResultSet:
    """Repeats were to stop when the interval is 5 % wide, at two looks in a row. It is at the last of nine looks only.

    With eight repeats the interval runs from the least to the greatest, 11 %; with nine the second of either end do,
    which are 4 % apart (docs/concepts/statistics.md).
    """
    rates = (950.0, 1000.0, 1040.0, 999.0, 1001.0, 1000.5, 1060.0, 1002.0, 1000.2)
    made = [
        trial(system, block, rate * speed)
        for block, rate in enumerate(rates, 1)
        for system, speed in (("rocksdb", 1.0), ("lmdb", 4 / 3))
    ]
    planned = {f"{name}-{n}": {"system": name} for name in ("rocksdb", "lmdb") for n in range(1, 21)}
    return of_trials(made, planned=planned, question=asking(until=0.05, at_most=20, metrics=("throughput",)))


def counted_twice() -> ResultSet:
    """Three blocks; a resumed run wrote each line a second time."""
    once = world(repeats=3)
    return replace(once, trials=[*once.trials, *once.trials])


def numbered_twice() -> ResultSet:
    """The same, and the second lines were taken for further blocks."""
    once = world(repeats=3)
    again = [replace(one, trial=f"{one.trial}-again", repeat=one.repeat + 3) for one in once.trials]
    series = once.series
    return replace(
        once, trials=[*once.trials, *again], planned={}, series=lambda name: series(name.removesuffix("-again"))
    )


def run_against_itself() -> ResultSet:
    """A result folder that is compared with a copy of itself."""
    one = replace(world({"rocksdb": 1000.0}, noise=0.02), name="monday")
    return join_results([one, replace(one, name="tuesday")])


def eleven_systems() -> ResultSet:
    """Ten contenders at 4 % of noise, of which one looks 7 % faster: alone p = 0.02, as the best of ten p = 0.17."""
    systems = {"baseline": 1000.0, **{f"s{number}": 1000.0 for number in range(9)}, "lucky": 1070.0}
    return world(systems, noise=0.04, question=asking(by="system", baseline="baseline", metrics=("throughput",)))


def many_ranks(repeats: int) -> ResultSet:
    """Two runs at different times. In all of 25 figures every repeat of the one beats every repeat of the other.

    The least p of Mann and Whitney's test is 2 ÷ C(12, 6) = 0.0022 at six repeats, and 25 times that is 0.054.
    At seven it is 2 ÷ C(14, 7) = 0.00058.
    """
    made = world(
        {"rocksdb": 1000.0, "lmdb": 2000.0}, repeats=repeats, interleaved=False, spoil=with_parts(25, repeats, 0.01)
    )
    halved = on("lmdb", scaled(parts(25), 0.5))
    trials = [halved(one) for one in made.trials]
    return replace(made, trials=trials, question=asking(metrics=("throughput", *parts(25))))


def exploratory(count: int) -> ResultSet:
    """One of many figures is 10 % lower at 4 % of noise: alone that is p = 0.002."""
    made = world(FLAT, noise=0.04, spoil=with_parts(count, noise=0.04))
    lower = on("second", scaled(("engine.part07",), 1 / 1.1))
    trials = [lower(one) for one in made.trials]
    return replace(made, trials=trials, question=asking(metrics=("throughput", *parts(count))))


def sweep(rates: Mapping[int, float], noise: float = 0.01) -> ResultSet:
    """One system by its number of clients, six blocks."""
    made = []
    latencies = [f"{kind}.{name}" for kind in ("read", "all") for name in (*SHAPE, "mean")]
    factors = {clients: typical(6, noise, clients) for clients in rates}
    for block in range(1, 7):
        for clients, rate in rates.items():
            one = trial("lmdb", block, rate * factors[clients][block - 1])
            one = scaled(latencies, clients / 10)(one)
            config: dict[str, Scalar] = {"system": "lmdb", "clients": clients}
            made.append(replace(one, trial=f"lmdb-{clients}-{block}", clients=clients, config=config))
    return of_trials(made, question=asking(by="clients", metrics=("throughput",)))


def knee(low: int, high: int) -> Expectation:
    """The knee of the only curve, as the bracket of tried loads that the answer or the table names."""
    return says(
        rf"(between|from) {low} (and|to) {high}\b|\[{low}, {high}\]|\b{low}( clients)? (to|–|and) {high} clients",
        ("curve",),
    )


def no_knee() -> Expectation:
    """No knee is named."""
    return Expectation(
        "no knee", lambda judged: "knee between" not in judged.judgement.answer and peakless(judged), ("curve",)
    )


def unsure_of_the_knee() -> Expectation:
    """A knee may be named where the whole is not called valid."""
    return Expectation(
        "no knee, or not valid",
        lambda judged: no_knee().holds(judged) or str(judged.judgement.verdict) != "valid",
        ("curve",),
    )


def peakless(judged: Judged) -> bool:
    """Whether the answer names no number of clients as enough."""
    return "no knee" in judged.text or "knee" not in judged.judgement.answer


UNDECIDED = [
    # Noise.
    Case(
        "the same store twice, five percent of noise, six blocks",
        lambda: world(FLAT, noise=0.05),
        (undecided(), verdict("valid"), says(N_IT_WOULD_TAKE)),
    ),
    Case(
        "five percent faster, ten percent of noise, six blocks",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1050.0}, noise=0.1),
        (undecided(), verdict("valid"), says(N_IT_WOULD_TAKE)),
    ),
    Case(
        "two percent faster, two percent of noise, six blocks",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1020.0}, noise=0.02),
        (undecided(), verdict("valid")),
    ),
    Case(
        "five percent faster on a host with two clock speeds, in two runs",
        lambda: replace(fast_and_slow_blocks(), interleaved=False),
        (undecided(), fires("sides-differ", "unchecked"), verdict("unchecked")),
    ),
    Case(
        "the same store twice, one trial ten times slower",
        lambda: world(FLAT, noise=0.02, spoil=on("second", faster(0.1), 2)),
        (no_claim(), verdict("valid")),
    ),
    Case("the same store twice, one block three times faster", one_lucky_block, (no_claim(), verdict("valid"))),
    Case(
        "the interval was to be two percent wide and is far wider after all repeats",
        lambda: world(noise=0.05, question=asking(until=0.02, at_most=6)),
        (fires("noisy", "suspect"), verdict("suspect"), favours("lmdb")),
    ),
    Case(
        "repeats stopped at the one look at which the interval was narrow",
        narrow_at_one_look,
        # Either name will do: the repeats are missing, or the interval was not reached.
        (verdict("suspect"), favours("lmdb")),
    ),
    # Few repeats.
    Case(
        "one repeat, twice as fast",
        lambda: world(TWICE, 1),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "two repeats, twice as fast",
        lambda: world(TWICE, 2),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "three repeats, twice as fast",
        lambda: world(TWICE, 3),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "five repeats, ten times faster",
        lambda: world(TEN, 5),
        (too_few(), fires("too-few-samples", "note"), verdict("valid")),
    ),
    Case(
        "six repeats, ten times faster",
        lambda: world(TEN, 6),
        (wins("lmdb", 10.0), silent("too-few-samples"), verdict("valid")),
    ),
    Case(
        "three blocks whose lines were written twice by a resumed run",
        counted_twice,
        (no_claim(), verdict("valid")),
    ),
    Case(
        "three blocks whose lines were taken for three further blocks", numbered_twice, (no_claim(), verdict("invalid"))
    ),
    Case("a run that is compared with a copy of itself", run_against_itself, (no_claim(), verdict("invalid"))),
    Case(
        "six blocks of which one side failed in half of the blocks",
        lambda: world(TWICE, spoil=on("lmdb", failed(0.5), 1, 2, 3)),
        (no_claim(), fires("errors", "invalid"), verdict("invalid")),
    ),
    Case(
        "a p99.9 of 6,000 operations: six of them are slower",
        lambda: world({"rocksdb": 50.0, "lmdb": 100.0}, question=asking(metrics=("throughput", "read.p99.9"))),
        (no_claim(), fires("too-few-samples", "withheld"), absent(), whole("valid")),
        metric="read.p99.9",
    ),
    # Many questions.
    Case(
        "a tenth faster in throughput: the last of 24 figures in which nothing differs",
        lambda: many_figures(24),
        (undecided(), says("exploratory"), verdict("valid")),
        metric=parts(24)[-1],
    ),
    Case(
        "a figure of 25 that is ten percent lower by p = 0.002, and was not the first asked for",
        lambda: exploratory(25),
        (undecided(), says("exploratory"), verdict("valid")),
        metric="engine.part07",
    ),
    Case(
        "the luckiest of ten contenders that are all alike but for noise",
        eleven_systems,
        (no_claim(), verdict("valid")),
        contender="lucky",
    ),
    Case(
        "25 figures beside the first, six repeats in each of two runs: no test can decide them",
        lambda: many_ranks(6),
        (no_claim(), says(r"n ?= ?6 cannot decide \d+ tests, n ?(≥|>=) ?7 can"), verdict("unchecked")),
        metric="engine.part03",
    ),
    Case(
        "the first of these figures is decided all the same",
        lambda: many_ranks(6),
        (wins("lmdb", 2.0), verdict("unchecked")),
    ),
    Case(
        "25 figures beside the first, seven repeats in each of two runs: all are decided",
        lambda: many_ranks(7),
        (wins("lmdb", 0.5), verdict("unchecked")),
        metric="engine.part03",
    ),
    # What nobody could look at.
    Case(
        "a container hides what others did on the host",
        lambda: world(spoil=given(without=("cpu.steal", "cpu.others", "io.others"))),
        (wins("lmdb", 4 / 3), verdict("valid"), says(r"\d+ of \d+ checks could run")),
    ),
    Case(
        "trials of ours that tell nothing of the clock, of errors or of lateness",
        lambda: world(
            spoil=both(
                facts(engine="0.1.0"),
                given(without=("clock.jumps", "errors", "late.generator", "late.client", "driver")),
            )
        ),
        (verdict("suspect"), favours("lmdb")),
    ),
    Case(
        "embedded trials of ours without the probe of our own cost: nobody knows whose time it was",
        lambda: world(spoil=given(without=("driver",))),
        (trusts_less(), not_for("rocksdb"), verdict("suspect")),
    ),
    Case(
        "trials of ours in which nobody counted failures",
        lambda: world(spoil=lambda one: replace(given(without=("errors",))(one), statuses={})),
        (trusts_less(), not_for("rocksdb"), verdict("suspect")),
    ),
    Case(
        "trials of ours, claimed to be the device's, whose device reads were not counted",
        lambda: world(spoil=given(without=DEVICE_READS), question=asking(claims="device")),
        (not_trusted(), verdict("suspect", "invalid")),
    ),
    # Curves: the least load that reaches 95 % of the plateau.
    Case(
        "throughput doubles up to 8 clients and stays",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 7900, 16: 8000, 32: 8000, 64: 8000}),
        (knee(4, 8), whole("valid")),
    ),
    Case(
        "throughput collapses beyond 16 clients to an eighth",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 7000, 16: 12_000, 32: 3000, 64: 1500}),
        (knee(8, 16), whole("valid")),
    ),
    Case(
        "throughput has a dent at 8 clients and grows on to 32",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 3000, 16: 8000, 32: 16_000, 64: 16_000, 128: 16_000}),
        (knee(16, 32), whole("valid")),
    ),
    Case(
        "throughput still doubles at the most clients that were tried",
        lambda: sweep({1: 1000, 2: 2000, 4: 4000, 8: 8000, 16: 16_000, 32: 32_000}),
        (no_knee(), whole("valid")),
    ),
]
