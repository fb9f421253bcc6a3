"""Crafted results on both sides of the thresholds for checks of the load generator."""

from __future__ import annotations

from dataclasses import replace

from judge_support import Case, both, experiment, facts, noting, set_figures
from loadstone.judge.finding import Severity
from loadstone.results.trial_result import TrialResult

NOTE, INVALID = Severity.NOTE, Severity.INVALID


def disturb_probe(trial: TrialResult) -> TrialResult:
    """A probe of the driver that took 5.5 times as long in the first repeat."""
    return set_figures(driver=1.1e6)(trial) if trial.repeat == 1 else trial


def remove_probe_at_rate(trial: TrialResult) -> TrialResult:
    """A trial at a rate in which the engine noted its limit, but did not report the figure `driver`."""
    noted = noting("generator-limited", "the engine is the limit")(
        set_figures(late__generator=0, without=("driver",))(trial)
    )
    return replace(noted, loop="open")


LATE = "0.11 % of the operations "
CASES = [
    Case(
        "generator-limited",
        "the engine's note where the figure is missing",
        experiment(remove_probe_at_rate),
        INVALID,
        "the engine is the limit",
    ),
    Case("generator-limited", "one in a thousand late", experiment(set_figures(late__generator=100))),
    Case(
        "generator-limited",
        "more late",
        experiment(set_figures(late__generator=110)),
        INVALID,
        f"{LATE}were sent more than 1 ms late because of the load generator",
    ),
    Case(
        "generator-limited",
        "more late, by a known time",
        experiment(set_figures(late__generator=110, read__lower__p99=2.9e7)),
        NOTE,
        f"{LATE}were sent more than 1 ms late because of the load generator",
    ),
    Case(
        "generator-limited",
        "most of the time for the engine",
        experiment(set_figures(driver=5.1e6)),
        INVALID,
        "51 % of each operation's time is the load generator's (5100000 ns of 10000000 ns)",
    ),
    Case("generator-limited", "a tenth of the time for the engine", experiment(set_figures(driver=1e6))),
    Case(
        "generator-limited",
        "more of the time",
        experiment(set_figures(driver=1.1e6)),
        NOTE,
        "11 % of each operation's time is the load generator's (1100000 ns of 10000000 ns)",
    ),
    Case(
        "generator-limited",
        "clients that share few processors, with a tenth of the time for the engine",
        experiment(both(set_figures(driver=4e5), facts(cpus=4))),
    ),
    Case(
        "generator-limited",
        "more of the processors' time",
        experiment(both(set_figures(driver=5e5), facts(cpus=4))),
        NOTE,
        "12.5 % of each operation's time is the load generator's (500000 ns of 4000000 ns)",
    ),
    Case(
        "generator-limited",
        "more of the time in one disturbed probe of six",
        experiment(disturb_probe),
    ),
    Case(
        "generator-limited",
        "short of processors, networked",
        experiment(both(set_figures(cpu__engine_share=0.95), facts(networked="yes"))),
        INVALID,
        "the load generator used 95 % of the processors",
    ),
    Case(
        "generator-limited",
        "at nine tenths of them",
        experiment(both(set_figures(cpu__engine_share=0.9), facts(networked="yes"))),
    ),
    Case(
        "generator-limited",
        "an executor at nine tenths of its time, and the host at its limit",
        experiment(both(set_figures(executor__busy_max=0.9, cpu__engine_share=0.99), facts(networked="yes"))),
    ),
    Case(
        "generator-limited",
        "a busier executor on an otherwise idle host",
        experiment(both(set_figures(executor__busy_max=0.91, cpu__engine_share=0.2), facts(networked="yes"))),
        INVALID,
        "an executor was busy for 91 % of the time",
    ),
    Case(
        "generator-limited",
        "a busy executor, which an embedded store occupies",
        experiment(set_figures(executor__busy_max=1.0)),
    ),
    Case(
        "generator-limited",
        "embedded, with the store in the engine",
        experiment(set_figures(cpu__engine_share=1.0)),
    ),
    Case(
        "generator-limited",
        "a debug build",
        experiment(facts(profile="debug")),
        INVALID,
        "this load generator is a debug build: its figures are invalid",
    ),
    Case(
        "generator-limited",
        "by the engine's note alone",
        experiment(both(set_figures(without=("driver",)), noting("generator-limited", "it was us"))),
        INVALID,
        "it was us",
    ),
    Case(
        "generator-limited", "a note that the figures contradict", experiment(noting("generator-limited", "it was us"))
    ),
    Case("client-limited", "one in a thousand late", experiment(set_figures(late__client=100))),
    Case(
        "client-limited",
        "more late",
        experiment(set_figures(late__client=110)),
        NOTE,
        f"{LATE}waited over 1 ms because all clients were busy",
    ),
    Case(
        "client-limited",
        "operations never sent",
        experiment(noting("unsent", "5 operations were never sent")),
        NOTE,
        "5 operations were never sent",
    ),
    Case("clock", "even", experiment(set_figures(clock__jumps=0))),
    Case(
        "clock",
        "jumps",
        experiment(set_figures(clock__jumps=3)),
        INVALID,
        "the measuring clock jumped 3 times relative to the kernel's clock",
    ),
]
