"""Crafted results for the checks of a trial and of a variant, both ways, at the edges of their thresholds."""

from __future__ import annotations

from dataclasses import replace

from judge_support import (
    REPEATS,
    STEADY,
    Case,
    asking,
    both,
    course,
    experiment,
    facts,
    given,
    told,
)
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

NOTE, WITHHELD, SUSPECT, INVALID = Severity


def in_open_loop(trial: TrialResult) -> TrialResult:
    """The same with a rate set."""
    return replace(trial, loop="open")


def disturbed_probe(trial: TrialResult) -> TrialResult:
    """The first repeat's probe of the driver took five times as long."""
    return given(driver=1.1e6)(trial) if trial.repeat == 1 else trial


def busy(rate: float) -> ResultSet:
    """Ten clients at `rate` op/s of 10 ms each."""
    return experiment(given(throughput=rate, all__mean=1e7, without=("runtime", "read.mean")))


def spread(width: float) -> ResultSet:
    """Six repeats of which the extremes, the interval's ends, are `width` of the median apart."""
    steps = (-0.5, -0.1, -0.01, 0.01, 0.1, 0.5)

    def spoil(trial: TrialResult) -> TrialResult:
        return given(throughput=1000 * (1 + width * steps[trial.repeat - 1]), all__mean=9.8e6)(trial)

    return experiment(spoil, question=asking(until=0.2, at_most=REPEATS))


LAW = "throughput × mean latency ÷ clients is "
LATE = "0.11 % of the operations "
CASES = [
    Case("littles-law", "at its lower edge", busy(850)),
    Case("littles-law", "below it", busy(849), SUSPECT, f"{LAW}0.849, not 0.85 to 1.05 (849.00 op/s × 10.0 ms ÷ 10)"),
    Case("littles-law", "at its upper edge", busy(1050)),
    Case("littles-law", "above it", busy(1060), SUSPECT, f"{LAW}1.06, not 0.85 to 1.05 (1,060.00 op/s × 10.0 ms ÷ 10)"),
    Case("littles-law", "in an open loop", replace(busy(500), trials=[*map(in_open_loop, busy(500).trials)])),
    Case(
        "littles-law",
        "with a threshold of its own",
        replace(busy(500), question=asking(checks={"littles-law": {"low": 0.5}})),
    ),
    Case("generator-limited", "one in a thousand late", experiment(given(late__generator=100))),
    Case(
        "generator-limited",
        "more late",
        experiment(given(late__generator=110)),
        INVALID,
        f"{LATE}were sent more than 1 ms late although a client was idle",
    ),
    Case(
        "generator-limited",
        "more late, by a time that is known",
        experiment(given(late__generator=110, read__lower__p99=2.9e7)),
        NOTE,
        f"{LATE}were sent more than 1 ms late although a client was idle",
    ),
    Case(
        "generator-limited",
        "most of the time its own",
        experiment(given(driver=5.1e6)),
        INVALID,
        "51 % of each operation's time is the engine's (5100000 ns of 10000000 ns)",
    ),
    Case("generator-limited", "a tenth of the time its own", experiment(given(driver=1e6))),
    Case(
        "generator-limited",
        "more of the time",
        experiment(given(driver=1.1e6)),
        NOTE,
        "11 % of each operation's time is the engine's (1100000 ns of 10000000 ns)",
    ),
    Case(
        "generator-limited",
        "clients that take turns on few processors, a tenth of whose time is its own",
        experiment(both(given(driver=4e5), facts(cpus=4))),
    ),
    Case(
        "generator-limited",
        "more of the processors' time",
        experiment(both(given(driver=5e5), facts(cpus=4))),
        NOTE,
        "12.5 % of each operation's time is the engine's (500000 ns of 4000000 ns)",
    ),
    Case(
        "generator-limited",
        "more of the time in one probe of six, which something disturbed",
        experiment(disturbed_probe),
    ),
    Case(
        "generator-limited",
        "short of processors, networked",
        experiment(both(given(cpu__engine_share=0.95), facts(networked="yes"))),
        INVALID,
        "the engine used 95 % of the processors",
    ),
    Case(
        "generator-limited",
        "at nine tenths of them",
        experiment(both(given(cpu__engine_share=0.9), facts(networked="yes"))),
    ),
    Case(
        "generator-limited",
        "an executor at nine tenths of its time, and the host at its limit",
        experiment(both(given(executor__busy_max=0.9, cpu__engine_share=0.99), facts(networked="yes"))),
    ),
    Case(
        "generator-limited",
        "a busier executor, on a host that is idle otherwise",
        experiment(both(given(executor__busy_max=0.91, cpu__engine_share=0.2), facts(networked="yes"))),
        INVALID,
        "an executor was busy for 91 % of the time",
    ),
    Case(
        "generator-limited",
        "a busy executor of an embedded store, whose work that is",
        experiment(given(executor__busy_max=1.0)),
    ),
    Case("generator-limited", "embedded, where the store is in the engine", experiment(given(cpu__engine_share=1.0))),
    Case(
        "generator-limited",
        "a debug build",
        experiment(facts(profile="debug")),
        INVALID,
        "this engine is a debug build: its figures are invalid",
    ),
    Case(
        "generator-limited",
        "by the engine's note alone",
        experiment(both(given(without=("driver",)), told("generator-limited", "it was us"))),
        INVALID,
        "it was us",
    ),
    Case("generator-limited", "a note that the figures contradict", experiment(told("generator-limited", "it was us"))),
    Case("client-limited", "one in a thousand late", experiment(given(late__client=100))),
    Case(
        "client-limited",
        "more late",
        experiment(given(late__client=110)),
        NOTE,
        f"{LATE}waited over 1 ms because all clients were busy",
    ),
    Case(
        "client-limited",
        "operations never sent",
        experiment(told("unsent", "5 operations were never sent")),
        NOTE,
        "5 operations were never sent",
    ),
    Case("page-cache", "a tenth from the device", experiment(given(device__read=1e9))),
    Case(
        "page-cache",
        "less",
        experiment(given(device__read=1e8)),
        NOTE,
        "reads returned 10.0 GB, of which the device gave 100 MB; at most 1 % of it was not cached",
    ),
    Case(
        "page-cache",
        "half, claimed to be the device's",
        experiment(given(device__read=5e9), question=asking(claims="device")),
    ),
    Case(
        "page-cache",
        "less, claimed to be the device's",
        experiment(given(device__read=4e9), question=asking(claims="device")),
        INVALID,
        "reads returned 10.0 GB, of which the device gave 4.00 GB; at most 40 % of it was not cached",
    ),
    Case(
        "page-cache",
        "on tmpfs",
        experiment(facts(file_system="tmpfs")),
        NOTE,
        "the data lies on tmpfs, which has no device",
    ),
    Case(
        "page-cache",
        "on tmpfs, claimed to be the device's",
        experiment(facts(file_system="tmpfs", claims="device")),
        INVALID,
        "the data lies on tmpfs, which has no device",
    ),
    Case(
        "page-cache",
        "claimed, but nobody measured",
        experiment(given(without=("device.read",)), question=asking(claims="device")),
        INVALID,
        "the results are claimed to be the device's, but its bytes were not measured",
    ),
    Case("not-steady", "level", experiment()),
    Case(
        "not-steady",
        "a step of a fifth",
        experiment(rates=STEADY[:15] + tuple(1.2 * rate for rate in STEADY[:15])),
        SUSPECT,
        "throughput rises from 100 to 120 op/s at 15 s",
    ),
    Case(
        "not-steady", "a step of a fiftieth", experiment(rates=STEADY[:15] + tuple(1.02 * rate for rate in STEADY[:15]))
    ),
    Case(
        "not-steady",
        "a short last interval",
        experiment(series=lambda _: replace(course((*STEADY, 10.0)), length_seconds=(1.0,) * 30 + (0.1,))),
    ),
    Case(
        "not-steady",
        "a JVM that compiles",
        experiment(facts(jvm_compiling=0.06)),
        SUSPECT,
        "the JVM still compiled during 6 % of the window",
    ),
    Case("not-steady", "a JVM that hardly does", experiment(facts(jvm_compiling=0.05))),
    Case("noisy", "as narrow as asked", spread(0.2)),
    Case(
        "noisy",
        "wider",
        spread(0.25),
        SUSPECT,
        "the interval of throughput is 25 % wide after 6 repeats, 20 % was asked for",
    ),
    Case(
        "noisy",
        "a latency at a rate, where throughput is constant",
        replace(
            experiment(lambda trial: replace(given(read__p99=3e7 * (1 + trial.repeat / 10))(trial), loop="open")),
            question=asking(until=0.2),
        ),
        SUSPECT,
        "the interval of read.p99 is 37 % wide after 6 repeats, 20 % was asked for",
    ),
    Case("noisy", "wider, with repeats left", replace(spread(0.25), question=asking(until=0.2, at_most=7))),
    Case("noisy", "wider, nothing asked", replace(spread(0.25), question=asking())),
    Case("too-few-samples", "ten beyond", experiment(given(n=10_000, read__p99__9=5e7))),
    Case(
        "too-few-samples",
        "fewer",
        experiment(given(n=9_999, read__p99__9=5e7)),
        WITHHELD,
        "read: p99.9 withheld, as fewer than 10 of 9,999 operations lie beyond",
    ),
    Case(
        "too-few-samples",
        "fewer, and asked for",
        experiment(given(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99.9"))),
        WITHHELD,
        "read: p99.9 withheld, as fewer than 10 of 9,999 operations lie beyond",
    ),
    Case(
        "too-few-samples",
        "fewer, and not asked for",
        experiment(given(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99"))),
    ),
    Case("too-few-samples", "of the load", experiment(given(n=9_999, load__insert__p99__9=5e7))),
    Case("too-few-samples", "of what is not an operation", experiment(given(n=2, cleanup__p99=5e7))),
    Case("too-few-samples", "nobody knows of how many", experiment(given(n=0, read__p99__9=5e7))),
    Case("too-few-samples", "three repeats", experiment(repeats=3), NOTE, "n=3: no interval, no claim possible"),
    Case("too-few-samples", "five repeats", experiment(repeats=5), NOTE, "n=5: no interval, no claim possible"),
    Case("too-few-samples", "one repeat", experiment(repeats=1), NOTE, "n=1: no interval"),
    Case("errors", "none", experiment()),
    Case(
        "errors",
        "one",
        experiment(both(given(errors=1), told("errors", "1 steps failed, the first: IO error"))),
        NOTE,
        "1 of 100,000 operations failed (0.001 %), the first: IO error",
    ),
    Case(
        "errors", "one in a thousand", experiment(given(errors=100)), NOTE, "100 of 100,000 operations failed (0.1 %)"
    ),
    Case("errors", "more", experiment(given(errors=101)), INVALID, "101 of 100,000 operations failed (0.101 %)"),
    Case(
        "errors",
        "while loading",
        experiment(given(load__errors=500, load__operations=1000)),
        INVALID,
        "500 of 1,000 operations of the load failed (50 %)",
    ),
    Case("errors", "every client closed", experiment(given(unclosed=0, load__unclosed=0))),
    Case(
        "errors",
        "clients that did not close",
        experiment(given(unclosed=2)),
        INVALID,
        "2 clients did not close: writes that they buffered may be lost",
    ),
    Case(
        "errors",
        "a client of the load that did not close",
        experiment(given(load__unclosed=1)),
        INVALID,
        "1 client of the load did not close: writes that it buffered may be lost",
    ),
    Case(
        "errors",
        "what never ended is none",
        experiment(
            both(given(without=("errors",)), lambda trial: replace(trial, statuses={"READ": {"OK": 9, "CENSORED": 3}}))
        ),
    ),
    Case(
        "errors",
        "what the store was not ready for",
        experiment(
            both(given(without=("errors",)), lambda trial: replace(trial, statuses={"READ": {"OK": 9, "NOT_YET": 3}}))
        ),
    ),
    Case(
        "errors",
        "by statuses",
        experiment(
            both(given(without=("errors",)), lambda trial: replace(trial, statuses={"READ": {"OK": 9, "ERROR": 3}}))
        ),
        NOTE,
        "3 of 100,000 operations failed (0.003 %)",
    ),
]
