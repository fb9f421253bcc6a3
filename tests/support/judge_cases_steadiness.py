"""Crafted results that do or do not trigger the checks of a trial's time series and of disturbances."""

from __future__ import annotations

from dataclasses import replace

from judge_support import STEADY, Case, experiment, facts, make_series, noting, set_figures
from loadstone.judge.finding import Severity

SUSPECT = Severity.SUSPECT
CASES = [
    Case("not-steady", "level", experiment()),
    Case(
        "not-steady",
        "a step of a fifth",
        experiment(rates=STEADY[:15] + tuple(1.2 * rate for rate in STEADY[:15])),
        SUSPECT,
        "throughput rises from 100 to 120 op/s (medians), 15 s into the window",
    ),
    Case(
        "not-steady", "a step of a fiftieth", experiment(rates=STEADY[:15] + tuple(1.02 * rate for rate in STEADY[:15]))
    ),
    Case(
        "not-steady",
        "a short last interval",
        experiment(series=lambda _: replace(make_series((*STEADY, 10.0)), length_seconds=(1.0,) * 30 + (0.1,))),
    ),
    Case(
        "not-steady",
        "a JVM that compiles",
        experiment(facts(jvm_compiling=0.06)),
        SUSPECT,
        "the JVM was still compiling during 6 % of the window",
    ),
    Case("not-steady", "a JVM that hardly compiles", experiment(facts(jvm_compiling=0.05))),
    Case(
        "stalled",
        "a second of silence, a slow tail",
        experiment(set_figures(all__p99__9=1.01e8), rates=(*STEADY, 0.0, *STEADY)),
    ),
    Case(
        "stalled",
        "a second of silence",
        experiment(set_figures(all__p99__9=1e8), rates=(*STEADY, 0.0, *STEADY)),
        SUSPECT,
        "no operation completed for 1.00 s (10 times the p99.9), starting 30 s into the window",
    ),
    Case(
        "stalled",
        "a second of silence, which equals the p99.9 of few operations",
        experiment(set_figures(n=500, without=("read.p99.9",), all__p99__9=1e9), rates=(*STEADY, 0.0, *STEADY)),
        SUSPECT,
        "no operation completed for 1.00 s, starting 30 s into the window",
    ),
    Case(
        "stalled", "less than a second", experiment(series=lambda _: make_series((*STEADY, 0.0, *STEADY), length=0.9))
    ),
    Case(
        "stalled",
        "two halves",
        experiment(series=lambda _: make_series((*STEADY, 0.0, 0.0, *STEADY), length=0.5)),
        SUSPECT,
        "no operation completed for 1.00 s (20 times the p99.9), starting 15 s into the window",
    ),
    Case(
        "stalled",
        "failed operations that were due long before",
        experiment(
            series=lambda _: replace(make_series((*STEADY, 0.0, 0.0)), ended=(100,) * 30 + (7, 7)),
        ),
    ),
    Case(
        "stalled",
        "nothing ended, but the operations due failed later",
        experiment(
            set_figures(all__p99__9=1e8),
            series=lambda _: replace(make_series((*STEADY, 0.0), (0,) * 30 + (7,)), ended=(100,) * 30 + (0,)),
        ),
        SUSPECT,
        "no operation completed for 1.00 s (10 times the p99.9), starting 30 s into the window",
    ),
    Case("stalled", "errors came back", experiment(series=lambda _: make_series((*STEADY, 0.0), (0,) * 30 + (7,)))),
    Case(
        "stalled",
        "no answer until the end",
        experiment(noting("hung", "3 operations got no answer")),
        SUSPECT,
        "3 operations got no answer",
    ),
    Case("interference", "a twentieth", experiment(set_figures(cpu__steal=0.05, cpu__others=0.05, io__others=0.05))),
    Case(
        "interference",
        "steal",
        experiment(set_figures(cpu__steal=0.06)),
        SUSPECT,
        "the hypervisor gave 6 % of the CPU time to other machines",
    ),
    Case(
        "interference",
        "others",
        experiment(set_figures(cpu__others=0.06)),
        SUSPECT,
        "other processes used 6 % of the CPU time",
    ),
    Case(
        "interference",
        "others' bytes",
        experiment(set_figures(io__others=0.06)),
        SUSPECT,
        "other processes kept the disks busy for 6 % of the time",
    ),
]
