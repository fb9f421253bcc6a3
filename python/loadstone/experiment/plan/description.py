"""Describes a plan for `--dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from loadstone.engine.describe import describe_engine
from loadstone.experiment.kind import kind_of
from loadstone.experiment.mistake import Mistake
from loadstone.experiment.model.template import as_text
from loadstone.experiment.plan.forecast import (
    describe_assumptions,
    estimate_seconds,
    estimate_space,
    group_searches,
    list_starts,
    rule_of,
)
from loadstone.experiment.plan.required_servers import Attached, StartRequest
from loadstone.format import parsing, units
from loadstone.results.result_set import ALL_OPERATIONS, DEFAULT_METRICS, sort_metrics
from loadstone.results.value import THROUGHPUT
from loadstone.search.sentence import describe_rule

if TYPE_CHECKING:
    from loadstone.experiment.plan.plan import Plan, Variant

ROWS_MAX = 40
NAMES_MAX = 6


def describe_plan(plan: Plan, warnings: Sequence[Mistake] = ()) -> str:
    """The plan as plain text, without a trailing newline."""
    experiment = plan.experiment
    directories = list(dict.fromkeys(str(variant.directory) for variant in plan.variants))
    lines = [f"question   {experiment.question}"] if experiment.question else []
    lines += [
        f"trials     {describe_trials(plan)}",
        f"each       {describe_trial(plan)}",
        *(f"stages     {stage}" for stage in describe_stages(plan)),
        *(f"servers    {line}" for line in describe_servers(plan)),
        f"compared   {describe_comparison(plan)}",
        f"order      {describe_order(plan)}",
        f"time       {describe_time(plan)}, if a system {describe_assumptions(plan)}",
        f"space      up to {units.format_size(estimate_space(plan))} in {first_few(directories)}",
        "",
        *variant_table(plan),
    ]
    for warning in warnings:
        lines += ["", str(warning)]
    return "\n".join(lines)


def describe_time(plan: Plan) -> str:
    """The forecast of the whole run; the length of a command or an fio job without a duration is unknown."""
    known = [
        variant.operations or variant.data.size or variant.data.moved_bytes or variant.data.seconds
        for variant in plan.variants
    ]
    is_known = plan.experiment.measure.duration is not None or all(known)
    return units.rough_span(*estimate_seconds(plan)) + ("" if is_known else " plus work of unknown length")


def describe_order(plan: Plan) -> str:
    """The order of the trials, with the first trials; a search plans each block only after the previous one."""
    seed = f"random within each repeat, seed {plan.experiment.seed}"
    if plan.experiment.find is None:
        return f"{seed}; first {first_few([trial.trial for trial in next(plan.plan_blocks())])}"
    groups = sum(1 for _ in group_searches(plan))
    return (
        f"{seed}; {units.count_noun(groups, 'group')} of searches, one for each set of servers" if groups > 1 else seed
    )


def describe_trials(plan: Plan) -> str:
    """The number of trials, or of searches and their probes."""
    repeats = plan.experiment.repeats
    if (rule := rule_of(plan)) is not None:
        count = units.count_noun(len(plan.variants), "search", "searches")
        most = f"at most {rule.probes_most} probes of {rule.at_least} to {rule.at_most} trials each"
        return f"{count} for {describe_rule(rule)}: {most}"
    count = units.count_noun(len(plan.variants), "variant")
    if repeats.until is None or plan.trials_most == plan.trials_least:
        number = units.count_noun(repeats.at_least, "repeat")
        return f"{count} × {number} = {units.count_noun(plan.trials_least, 'trial')}"
    limits = repeats.until if isinstance(repeats.until, dict) else {deciding_metric(plan): repeats.until}
    widths = [f"{parsing.share_written(share)} of {metric}" for metric, share in limits.items()]
    until = f"until the interval is at most {units.list_items(widths, len(widths))}"
    most = f"{units.format_count(plan.trials_least)} to {units.format_count(plan.trials_most)} trials"
    return f"{count} × {repeats.at_least} to {repeats.at_most} repeats, {until} = {most}"


def deciding_metric(plan: Plan) -> str:
    """The figure that decides when there are enough repeats (`first_metric`), if known before the run."""
    first = select_metrics(plan)[0]
    # A mix that is not known before the run may lack the operation.
    is_known = plan.experiment.compare.metrics or first == THROUGHPUT or list_operations(plan) is not None
    return first if is_known else "the first latency"


def list_operations(plan: Plan) -> set[str] | None:
    """The operations that the variants perform; None if a variant may perform any operation."""
    mixes = [kind_of(variant).operations(variant.work) for variant in plan.variants]
    return None if None in mixes else {operation for mix in mixes for operation in mix or ()}


def select_metrics(plan: Plan) -> tuple[str, ...]:
    """The metrics of the comparison, in order; by default, the default metrics of the operations in the mix."""
    is_at_rate = all(variant.rate is not None or variant.stages for variant in plan.variants)
    metrics = plan.experiment.compare.metrics
    if not metrics:
        performed = list_operations(plan)
        usual = (
            DEFAULT_METRICS if performed is None else [name for name in DEFAULT_METRICS[1:] if is_of(name, performed)]
        )
        metrics = tuple(dict.fromkeys((THROUGHPUT, *(usual or (ALL_OPERATIONS if is_at_rate else ())))))
    return sort_metrics(metrics, is_at_rate=is_at_rate)


def is_of(metric: str, operations: Collection[str]) -> bool:
    """Whether a metric is a figure of one of the operations: `read.p99` of `read`."""
    return metric.partition(".")[0] in operations


def describe_trial(plan: Plan) -> str:
    """The phases of a trial."""
    experiment, measure = plan.experiment, plan.experiment.measure
    steps = ["load", "settle"] if measure.settle else ["load"]
    if not any(variant.data.records for variant in plan.variants):
        steps = []
    elif experiment.load.reuse:
        networked = {describe_engine().is_networked(variant.store) for variant in plan.variants}
        steps = ["copy the loaded data"] if False in networked else []
        steps += ["use the loaded table"] if True in networked else []
        steps = [" or ".join(steps)]
    if measure.warmup is None:
        steps.append("warm up for the time that a pilot block finds")
    elif measure.warmup:
        steps.append(f"warm up {parsing.format_seconds(measure.warmup)}")
    steps.append(f"measure {describe_window(plan)}")
    if measure.verify:
        steps[-1] += ", verifying every read"
    if measure.ledger:
        steps[-1] += ", recording every write"
        steps.append("read everything back")
    return ", ".join(steps)


def describe_window(plan: Plan) -> str:
    """The length of a window."""
    duration = plan.experiment.measure.duration
    if duration is not None:
        return parsing.format_seconds(duration)
    counts = sorted({variant.operations for variant in plan.variants if variant.operations is not None})
    return " or ".join(map(units.format_count, counts)) + " operations" if counts else "all of the work"


def describe_servers(plan: Plan) -> list[str]:
    """The servers, one per line, with the number of times that the lab starts them."""
    counts = Counter(map(server_text, list_starts(plan, plan.experiment.repeats.at_least)))
    times = {name: "once" if count == 1 else units.count_noun(count, "time") for name, count in counts.items()}
    started = [f"{name}, started {often}" for name, often in times.items()]
    attached = dict.fromkeys(
        variant.servers.how
        for variant in plan.variants
        if variant.servers and isinstance(variant.servers.how, Attached)
    )
    return [*started, *(f"attached, at {', '.join(servers.hosts)}" for servers in attached)]


def describe_stages(plan: Plan) -> list[str]:
    """The stages of the first variant, one per line."""
    of_first = plan.variants[0].stages if plan.variants else ()
    return [f"{stage.number}: {stage.rate} for {parsing.format_seconds(stage.length_ns / 1e9)}" for stage in of_first]


def format_rate(variant: Variant) -> str:
    """The rate of a variant, and the arrival process of its operations."""
    if variant.stages:
        rates = [rate for stage in variant.stages for rate in (stage.rate_from, stage.rate_to)]
        count = units.count_noun(len(variant.stages), "stage")
        return f"{count}, {min(rates):,.10g} to {max(rates):,.10g} op/s {variant.arrival}"
    return "closed loop" if variant.rate is None else f"{variant.rate:,.10g} op/s {variant.arrival}"


def first_few(names: Sequence[str]) -> str:
    """The first few names of a list, separated by commas."""
    return ", ".join(names[:NAMES_MAX]) + (" …" if len(names) > NAMES_MAX else "")


def server_text(start: StartRequest) -> str:
    """A description of the servers: `hbase, 3 nodes, hbase.wal.dir=/mnt/nvme`."""
    return ", ".join(
        [
            start.system,
            units.count_noun(start.nodes, "node"),
            *(f"{key}={value}" for key, value in start.settings.items()),
        ]
    )


def describe_comparison(plan: Plan) -> str:
    """The compared values."""
    compare = plan.experiment.compare
    figures = ", ".join(select_metrics(plan))
    if compare.by is None:
        return f"nothing; {figures}"
    return f"{compare.by}, with {as_text(compare.baseline if compare.baseline is not None else '')}: {figures}"


def is_of_work(variant: Variant, key: str) -> bool:
    """Whether a key of the experiment file affects the work. A tool that creates the clients ignores most keys."""
    kind = kind_of(variant)
    return kind.clients or key in kind.passed or variant.store in describe_engine().stores


def variant_table(plan: Plan) -> list[str]:
    """A table of the variants, with their dimensions and their other main parameters."""
    rows = [
        {
            **{name: as_text(value) for name, value in variant.config.items()},
            "store": variant.store,
            "durability": variant.durability if is_of_work(variant, "durability") else "",
            "clients": units.format_count(variant.clients) if is_of_work(variant, "clients") else "",
            "rate": "" if variant.data.moved_bytes or variant.data.seconds else format_rate(variant),
            "work" if plan.experiment.workloads else "workload": kind_of(variant).title(variant.work),
        }
        for variant in plan.variants[:ROWS_MAX]
    ]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    head = {name: name for name in names}
    lines = ["  ".join(row[name].ljust(widths[name]) for name in names).rstrip() for row in (head, *rows)]
    more = len(plan.variants) - ROWS_MAX
    return [*lines, *([f"… and {more:,} more"] if more > 0 else [])]
