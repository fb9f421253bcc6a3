"""Handmade judgements for reports: usual, large, poor and hostile."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Cell, Claim, Comparison, Judgement, VariantKey
from loadstone.judge.sweep import fit_curves
from loadstone.report import html, markdown
from loadstone.report.sections import sections
from loadstone.report.view import View
from loadstone.results.result_set import Question, ResultSet, variant_key
from loadstone.results.trial_result import Scalar, Series, TrialResult, values_by_metric
from loadstone.results.value import PERCENTILES, Value, better_direction
from loadstone.statistics.estimate import REPEATS_MIN, Estimate


def page(judgement: Judgement) -> str:
    """The HTML page of a judgement."""
    view = View(judgement)
    return html.document(view, sections(view))


def pull_request(judgement: Judgement) -> str:
    """The text of a judgement for a pull request."""
    view = View(judgement)
    return markdown.document(view, sections(view))


QUESTION = (
    "Which embedded engine serves YCSB A and C fastest at equal durability, at which p99, for how many device bytes?"
)
EXPERIMENT = """\
question: Which embedded engine serves YCSB A and C fastest?
seed: 20240611
systems: [rocksdb, lmdb, fjall]
workload: {file: workloads/workloada, recordcount: 1000000}
vary: {workload: [a, c]}
repeat: {at_least: 6, at_most: 12, until: 5 %}
compare: {by: system, baseline: rocksdb}
"""
ENVIRONMENT = {
    "loadstone": "0.3.0",
    "command": ["loadstone", "run", "experiments/quickstart.yaml", "--scale", "small"],
    "hosts": [
        {
            "name": "bench-1",
            "processor": "AMD EPYC 7443P 24-Core Processor",
            "processors": 48,
            "memory_bytes": 270_000_000_000,
            "kernel": "Linux 6.1.0-18-amd64",
            "disks": {"nvme0n1": {"model": "Micron 9300", "bytes": 3_200_000_000_000, "scheduler": "none"}},
        }
    ],
    "limits": {"open_files": 1_048_576, "locked_memory_bytes": None},
    "git": {"commit": "f3e6922", "changed": False},
}
FACTS: dict[str, dict[str, Scalar]] = {
    "rocksdb": {
        "version": "10.10.1",
        "durability": "os",
        "how": "write-ahead log, not synced",
        "cache_bytes": "33554432",
        "compression": "none, then lz4",
        "file_system": "ext4",
        "device": "nvme0n1p2 on nvme0n1",
    },
    "lmdb": {
        "version": "0.9.70",
        "durability": "os",
        "how": "pages written at each commit, not synced",
        "compression": "none",
        "file_system": "ext4",
        "device": "nvme0n1p2 on nvme0n1",
    },
    "fjall": {
        "version": "2.11.2",
        "durability": "os",
        "how": "journal, not synced",
        "cache_bytes": "33554432",
        "compression": "lz4",
        "file_system": "tmpfs",
        "device": "no device (tmpfs)",
    },
}
# Operations per second, median latency in µs, and length of the tail, by system and workload.
SHAPES = {
    ("rocksdb", "a"): (111_061.2, 6.3, 1.05),
    ("lmdb", "a"): (102_491.7, 9.9, 1.3),
    ("fjall", "a"): (84_310.4, 11.8, 1.12),
    ("rocksdb", "c"): (163_907.9, 4.9, 0.8),
    ("lmdb", "c"): (421_655.3, 1.9, 0.5),
    ("fjall", "c"): (158_220.6, 5.4, 0.85),
}
OPERATIONS = {"a": ("read", "update"), "c": ("read",)}


def latencies(operation: str, p50_us: float, tail: float, count: int, draw: random.Random) -> list[Value]:
    """Percentiles of an operation, ns: a log-normal body with a longer tail."""
    results = []
    for name, share in PERCENTILES.items():
        if count * (1 - share) < 10:
            continue
        nines = -math.log10(1 - share)
        value = p50_us * 1000 * math.exp(tail * (nines - 0.301)) * draw.uniform(0.96, 1.05)
        results.append(Value(f"{operation}.{name}", value, "ns", count))
    return results


def make_series(level: float, p50_ns: float, seed: int, seconds: int = 60) -> Series:
    """A minute of intervals with occasional compactions."""
    draw = random.Random(seed)
    dips = [0.72 if at % 17 == seed % 7 + 5 else 1.0 for at in range(seconds)]
    return Series(
        tuple(float(at) for at in range(seconds)),
        (1.0,) * seconds,
        tuple(level * dip * draw.uniform(0.95, 1.05) for dip in dips),
        tuple(p50_ns * draw.uniform(0.97, 1.03) / dip for dip in dips),
        tuple(p50_ns * draw.uniform(6, 9) / dip**5 for dip in dips),
        (0,) * seconds,
    )


def trial(system: str, workload: str, repeat: int, **more: Scalar) -> TrialResult:
    """A trial of the usual experiment."""
    draw = random.Random(f"{system} {workload} {repeat}")
    level, p50, tail = SHAPES[system, workload]
    level *= draw.gauss(1, 0.018)
    count = int(level * 60)
    figures = [Value("throughput", level, "op/s", count), Value("runtime", 60e9, "ns", 1)]
    for operation in OPERATIONS[workload]:
        slower = 2.2 if operation == "update" else 1.0
        figures += latencies(operation, p50 * slower, tail, count // len(OPERATIONS[workload]), draw)
    if system != "fjall":
        written = {"a": 1630.0, "c": 0.0}[workload] * (2.6 if system == "lmdb" else 1) * draw.uniform(0.97, 1.03)
        read = {"rocksdb": 212.0, "lmdb": 96.0}[system] * draw.uniform(0.9, 1.1)
        figures += [
            Value("device.read_per_operation", read, "B/op", count),
            Value("device.written_per_operation", written, "B/op", count),
        ]
        if workload == "a":
            figures.append(Value("write_amplification", written / 500, "×", count))
    figures += [
        Value("cpu.busy", draw.uniform(0.5, 0.6), "share", 60),
        Value("cpu.steal", draw.uniform(0, 0.02), "share", 60),
        Value("memory.available_min", draw.uniform(2.0e11, 2.1e11), "B", 60),
    ]
    config = {"system": system, "workload": workload, **more}
    name = "-".join(str(part) for part in (*config.values(), repeat))
    start = 1_718_104_500_000_000_000 + int(draw.random() * 3.6e12)
    return TrialResult(
        name,
        config,
        repeat,
        values_by_metric(*figures),
        2,
        "closed",
        FACTS[system],
        order=draw.randrange(36),
        start_unix_ns=start,
    )


def cells(
    results: ResultSet, withheld: Mapping[tuple[VariantKey, str], str] | None = None
) -> dict[tuple[VariantKey, str], Cell]:
    """A cell for each variant and metric: the median, with the range of all repeats from six repeats on."""
    entries = {}
    for key, trials in results.variants.items():
        for metric in dict.fromkeys(name for trial in trials for name in trial.values):
            samples = tuple((trial.repeat, trial.values[metric].value) for trial in trials if metric in trial.values)
            unit = next(trial.values[metric].unit for trial in trials if metric in trial.values)
            why = (withheld or {}).get((key, metric), "")
            entries[key, metric] = Cell(key, metric, unit, estimate([value for _, value in samples]), samples, why)
    return entries


def estimate(numbers: Sequence[float]) -> Estimate:
    """The median; from six values on, their range is the interval (96.9 % for six)."""
    if len(numbers) < REPEATS_MIN:
        return Estimate(median(numbers), len(numbers))
    level = 1 - 2 / 2 ** len(numbers)
    return Estimate(median(numbers), len(numbers), min(numbers), max(numbers), level, "order statistics")


def compare(baseline: Cell, contender: Cell, by: str, findings: tuple[Finding, ...] = ()) -> Comparison:
    """A contender compared with a baseline; a claim requires disjoint ranges."""
    way = better_direction(contender.metric)
    first, other = contender.estimate, baseline.estimate
    few = first.low is None or other.low is None
    ratio = Estimate(first.value / other.value, first.n)
    claim: Claim = "impossible"
    if first.low is not None and first.high is not None and other.low is not None and other.high is not None:
        ratio = replace(ratio, low=first.low / other.high, high=first.high / other.low, level=0.95, method="Fieller")
        apart = first.low > other.high or first.high < other.low
        claim = "none" if not apart else "better" if (ratio.value > 1) == (way == "higher") else "worse"
    if any(finding.severity == Severity.INVALID for finding in findings):
        claim = "refused"
    context = tuple(pair for pair in contender.variant if pair[0] != by)
    p = None if few else 0.0312 if claim != "none" else 0.4375
    test = "" if few else f"signed ranks within blocks, n={first.n}"
    return Comparison(
        contender.metric, contender.unit, way, context, by, baseline, contender, ratio, claim, p,
        None if p is None else min(p * 1.3, 1), test, None, findings,
    )  # fmt: skip


def judge_results(
    results: ResultSet, findings: Mapping[str, Sequence[Finding]] | None = None, **more: object
) -> Judgement:
    """A judgement with cells and comparisons of all headline metrics."""
    cells_by_metric = cells(results)
    by = results.question.by
    comparisons = []
    for metric in results.headline_metrics if by else ():
        for key in results.variants:
            base = variant_key({**dict(key), str(by): results.question.baseline or results.dimensions[str(by)][0]})
            if key != base and (base, metric) in cells_by_metric and (key, metric) in cells_by_metric:
                comparisons.append(compare(cells_by_metric[base, metric], cells_by_metric[key, metric], str(by)))
    by_trial = {trial.trial: tuple((findings or {}).get(trial.trial, ())) for trial in results.trials}
    judgement = Judgement(results, by_trial, {}, cells_by_metric, comparisons)
    return replace(judgement, **more)  # type: ignore[arg-type]


def usual() -> Judgement:
    """Three systems, two workloads, six repeats: one suspect trial, one refused variant, one withheld figure."""
    trials = [trial(system, workload, repeat) for repeat in range(1, 7) for system, workload in SHAPES]
    by_id = {entry.trial: entry for entry in trials}

    def series(name: str) -> Series | None:
        system, workload, repeat = name.split("-")
        level = by_id[name].value("throughput") or 0
        return make_series(level, SHAPES[system, workload][1] * 1000, int(repeat))

    results = ResultSet(
        "quickstart",
        trials,
        Question(QUESTION, "system", "rocksdb", ("throughput", "read.p99", "update.p99")),
        {name: entry.config for name, entry in by_id.items()},
        True,
        ENVIRONMENT,
        EXPERIMENT,
        series,
    )
    steady = Finding(
        "not-steady",
        Severity.SUSPECT,
        "lmdb on workload a, repeat 4: throughput still fell by 11 % over the second half of the measured window",
        "measure longer, or warm up longer: `warmup: 60 s`",
        ("lmdb-a-4",),
    )
    wrong = tuple(f"fjall-a-{repeat}" for repeat in (2, 5))
    errors = Finding(
        "errors",
        Severity.INVALID,
        "fjall on workload a: 0.31 % of the updates failed (ERROR), more than the 0.1 % that are tolerated",
        "read the load generator's log in trials/fjall-a-2/, mend the cause, run again with --resume",
        wrong,
    )
    cache = Finding(
        "page-cache",
        Severity.NOTE,
        "the devices delivered 4 % of the bytes that reads returned: the page cache answered the rest",
        "for the device's own speed load more data than memory holds, or state `claims: device` and be refused",
        tuple(entry.trial for entry in trials if entry.config["workload"] == "c"),
    )
    by_trial = {"lmdb-a-4": [steady], **{name: [errors] for name in wrong}}
    for name in cache.trials:
        by_trial.setdefault(name, []).append(cache)
    judgement = judge_results(results, by_trial)
    rare = (variant_key({"system": "fjall", "workload": "a"}), "update.p99.99")
    judged_cells = dict(judgement.cells)
    judged_cells[rare] = replace(judged_cells[rare], withheld="n(1 − p) = 8 < 10")
    comparisons = [
        compare(entry.baseline, entry.contender, "system", (errors,) if entry.contender.variant == rare[0] else ())
        for entry in judgement.comparisons
    ]
    answer = (
        "On workload a rocksdb leads lmdb by 1.06× in throughput; on workload c lmdb serves 2.56× as many operations "
        "a second as rocksdb, at a p99 of 4.5 µs against 19.2 µs; fjall is not ranked on workload a: its "
        "trials are invalid."
    )
    return replace(judgement, cells=judged_cells, comparisons=comparisons, answer=answer)


def scaling() -> Judgement:
    """Two systems from 1 to 64 clients; one has a knee and drops after it."""
    laws = {"cassandra": (5200.0, 0.035, 0.0009), "scylla": (7900.0, 0.018, 0.00012)}
    clients = (1, 2, 4, 8, 16, 32, 64)
    trials = []
    for system, (lam, sigma, kappa) in laws.items():
        for number in clients:
            for repeat in range(1, 7):
                draw = random.Random(f"{system} {number} {repeat}")
                rate = lam * number / (1 + sigma * (number - 1) + kappa * number * (number - 1)) * draw.gauss(1, 0.02)
                figures = [Value("throughput", rate, "op/s", int(rate * 30))]
                figures += latencies("read", number / rate * 1e6 * 0.8, 0.9, int(rate * 30), draw)
                config: dict[str, Scalar] = {"system": system, "clients": number}
                trials.append(
                    TrialResult(
                        f"{system}-{number}-{repeat}", config, repeat, values_by_metric(*figures), number, "closed"
                    )
                )
    question = Question("How many clients does each hold?", "system", "cassandra", ("throughput", "read.p99"))
    results = ResultSet("client-sweep", trials, question, interleaved=True, experiment="systems: [cassandra, scylla]\n")
    return replace(
        judge_results(results),
        curves=list(fit_curves(results.variants, interleaved=True)),
        answer="cassandra saturates first.",
    )


def import_pair() -> Judgement:
    """A pair of logs of another tool, one run each: no interval, no series, no experiment."""
    trials = []
    for name, rate, p95 in (("hdd", 388.46, 18_751_000.0), ("accelerated", 1770.70, 3_623_000.0)):
        figures = values_by_metric(
            Value("throughput", rate, "op/s", 1_000_000), Value("insert.p95", p95, "ns", 1_000_000)
        )
        trials.append(TrialResult(name, {"wal": name}, 1, figures, 4, facts={"tool": "YCSB 0.17.0"}))
    question = Question("", "wal", "hdd", ("throughput", "insert.p95"))
    few = Finding(
        "too-few-samples", Severity.NOTE, "n=1: no interval, no claim possible", "repeat it 6 times", ("hdd",)
    )
    results = ResultSet("imported", trials, question, warnings=("2 lines around the log were skipped",))
    return judge_results(
        results, {"hdd": [few]}, answer="accelerated measured 4.56× the throughput of hdd; n=1: no claim possible."
    )


def hostile() -> Judgement:
    """Names that would break a page if they were not escaped."""
    names = [
        '<script>alert("x")</script>',
        "</script><img src=x onerror=alert(1)>",
        "größe|`*_✓ 数据库 'quoted' & \"more\"",
        "x" * 300,
    ]
    trials = []
    for name in names:
        for repeat in range(1, 7):
            rate = 1000.0 + len(name) + repeat
            figures = values_by_metric(
                Value("throughput", rate, "op/s", 9000), *latencies("read", 10, 1, 9000, random.Random(repeat))
            )
            facts: dict[str, Scalar] = {"how": name, "version": "</td>"}
            trials.append(TrialResult(f"{name}-{repeat}", {"system": name}, repeat, figures, facts=facts))
    results = ResultSet(
        "</title><b>",
        trials,
        Question(names[0], "system", names[1]),
        environment={"<i>": {"</dl>": [names[0], {"deep": names[3]}]}},
        experiment="a: </code></pre><script>\n```\n",
    )
    bad = Finding("<b>check", Severity.SUSPECT, names[1], names[0], (trials[0].trial,))
    return judge_results(results, {trials[0].trial: [bad]}, answer=f"{names[0]} beats {names[3]}")


def large(trials_count: int = 10_000) -> Judgement:
    """Many contexts, each with two systems and ten repeats."""
    trials = []
    for number in range(trials_count):
        repeat, rest = number % 10 + 1, number // 10
        system, size = ("rocksdb", "lmdb")[rest % 2], rest // 2
        draw = random.Random(number)
        figures = [
            Value("throughput", draw.gauss(1e5, 2e3) + size, "op/s", 10**6),
            *latencies("read", 8, 1, 10**6, draw),
        ]
        config: dict[str, Scalar] = {"system": system, "value_bytes": 100 + size}
        trials.append(
            TrialResult(
                f"{number:06}", config, repeat, values_by_metric(*figures), 2, "closed", FACTS[system], order=number
            )
        )
    steady = Finding("not-steady", Severity.SUSPECT, "a trend of 3 %", "measure longer", ("000017",))
    results = ResultSet(
        "large",
        trials,
        Question("How does the size of values matter?", "system", "rocksdb"),
        interleaved=True,
        experiment=EXPERIMENT,
        series=lambda name: make_series(1e5, 8000, int(name)),
    )
    return judge_results(results, {"000017": [steady]}, answer="lmdb and rocksdb are alike at every size.")


def single_variant() -> Judgement:
    """A single variant without a comparison and without latencies."""
    trials = [
        TrialResult(
            str(repeat), {"system": "redb"}, repeat, values_by_metric(Value("throughput", 1000.0 + repeat, "op/s", 99))
        )
        for repeat in range(1, 8)
    ]
    return judge_results(ResultSet("alone", trials, Question("How fast is redb?"), experiment=EXPERIMENT))


def empty_judgement() -> Judgement:
    """A judgement without trials."""
    return judge_results(ResultSet("nothing", [], Question("What would be?"), experiment=EXPERIMENT))


ALL = {make.__name__: make for make in (usual, scaling, import_pair, hostile, single_variant, empty_judgement)}
