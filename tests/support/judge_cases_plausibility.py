"""Crafted results that do or do not trigger the checks of figures that contradict each other or the hardware."""

from __future__ import annotations

from dataclasses import replace

from judge_support import Case, asking, both, experiment, facts, set_figures
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value

NOTE, WITHHELD, _, SUSPECT, INVALID = Severity


def open_loop(trial: TrialResult) -> TrialResult:
    """Turns a trial into an open loop."""
    return replace(trial, loop="open")


def busy(rate: float, driver: float = 0.0) -> ResultSet:
    """Ten clients, `rate` op/s, 10 ms per operation, and `driver` ns of engine time per operation."""
    return experiment(set_figures(throughput=rate, all__mean=1e7, driver=driver, without=("runtime", "read.mean")))


LAW = "throughput × mean latency ÷ clients is "
# A lower bound: the operation at this rank took at least this long.
BELOW = Value("read.p99.9", 1e6, "ns", 100_000, "at_least")
CASES = [
    Case("littles-law", "at its lower edge", busy(850)),
    Case("littles-law", "below it", busy(849), SUSPECT, f"{LAW}0.849, not 0.85 to 1.05 (849 op/s × 10.0 ms ÷ 10)"),
    Case("littles-law", "with the engine's share", busy(849, driver=12_000)),
    Case(
        "littles-law",
        "below it with the engine's share",
        busy(849, driver=11_000),
        SUSPECT,
        f"{LAW}0.849, not 0.85 to 1.05 (849 op/s × 10.0 ms ÷ 10)",
    ),
    Case("littles-law", "at its lower edge with a disturbed probe", busy(750, driver=1e9)),
    Case(
        "littles-law",
        "below it with a disturbed probe",
        busy(749, driver=1e9),
        SUSPECT,
        f"{LAW}0.749, not 0.85 to 1.05 (749 op/s × 10.0 ms ÷ 10)",
    ),
    Case("littles-law", "at its upper edge", busy(1050)),
    Case("littles-law", "above it", busy(1060), SUSPECT, f"{LAW}1.06, not 0.85 to 1.05 (1,060 op/s × 10.0 ms ÷ 10)"),
    Case("littles-law", "in an open loop", replace(busy(500), trials=[*map(open_loop, busy(500).trials)])),
    Case(
        "littles-law",
        "with a separate threshold",
        replace(busy(500), question=asking(checks={"littles-law": {"low": 0.5}})),
    ),
    Case("impossible", "as fast as the device", experiment(set_figures(read__bandwidth=1e9))),
    Case(
        "impossible",
        "faster",
        experiment(set_figures(read__bandwidth=1_000_010_000)),
        INVALID,
        "read at 1,000.01 MB/s, but the device's limit is 1,000 MB/s",
    ),
    Case(
        "impossible",
        "written faster",
        experiment(set_figures(write__bandwidth=6e8)),
        INVALID,
        "wrote at 600 MB/s, but the device's limit is 500 MB/s",
    ),
    Case(
        "impossible",
        "faster than an unused link",
        experiment(both(set_figures(write__bandwidth=4.7e8), facts(network_bps=125_000_000))),
    ),
    Case(
        "impossible",
        "bytes from the device",
        experiment(set_figures(device__read=1.01e11)),
        INVALID,
        "the device was read at 1,010 MB/s, but the device's limit is 1,000 MB/s",
    ),
    Case(
        "impossible",
        "bytes from the device, most of them of a warm-up",
        experiment(set_figures(device__read=1.01e11, device__read_per_operation=1e5)),
    ),
    Case(
        "impossible",
        "values over a link",
        experiment(both(set_figures(returned=2e10), facts(networked="yes", network_bps=125_000_000))),
        INVALID,
        "values were returned at 200 MB/s, but the link's limit is 125 MB/s",
    ),
    Case(
        "impossible",
        "as many nodes together",
        experiment(both(set_figures(read__bandwidth=1.5e9), facts(data_nodes=2, bandwidth_of="cluster"))),
    ),
    Case(
        "impossible",
        "percentiles that fall",
        experiment(set_figures(read__p99=6e7)),
        INVALID,
        "read.p99 of 60.0 ms, above read.p99.9 of 50.0 ms",
    ),
    Case(
        "impossible",
        "a bound below the percentile under it",
        experiment(lambda trial: replace(trial, values={**trial.values, "read.p99.9": BELOW})),
    ),
    Case("impossible", "by rounding only", experiment(set_figures(read__p99=5.04e7))),
    Case(
        "impossible",
        "a mean above the maximum",
        experiment(set_figures(read__mean=3e8)),
        INVALID,
        "read.mean of 300 ms, above read.max of 200 ms",
    ),
    Case(
        "impossible",
        "a mean below the minimum",
        experiment(set_figures(read__mean=5e5)),
        INVALID,
        "read.mean of 500 µs, below read.min of 1.00 ms",
    ),
    Case(
        "impossible",
        "an overall mean that failures raised above the mean of successes",
        experiment(set_figures(all__max=2e8, all__mean=3e8, errors=50)),
    ),
    Case(
        "impossible",
        "an overall mean above its maximum, without failures",
        experiment(set_figures(all__max=2e8, all__mean=3e8)),
        INVALID,
        "all.mean of 300 ms, above all.max of 200 ms",
    ),
    Case(
        "impossible",
        "negative",
        experiment(set_figures(throughput=-5)),
        INVALID,
        "throughput is negative: -5 op/s",
    ),
]
