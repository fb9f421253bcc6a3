"""Validates how trials are measured: the window, the pilot block, repeats and the arrival of operations."""

from __future__ import annotations

from loadstone.experiment.kind import KINDS
from loadstone.experiment.model.experiment import AT_MOST_FACTOR, DURATION_SECONDS, WARMUP_SECONDS, Measure
from loadstone.experiment.validation.context import Context
from loadstone.format import units
from loadstone.format.parsing import format_seconds
from loadstone.statistics.estimate import REPEATS_MIN

FINDS_WARMUP = "`pilot` and `measure.warmup` cannot be combined: the pilot block exists to find the warm-up"


def check_window(context: Context) -> None:
    """Checks that the window has one length, and fits into the timeout."""
    measure, timeout = context.experiment.measure, context.experiment.timeout
    check_ledger(context)
    if not check_steady(context):
        return
    if measure.duration is not None and measure.operations is not None:
        hint = "keep one of them"
        context.add_mistake(("measure", "operations"), "measure has both `duration` and `operations`", hint)
    if context.is_set("measure", "duration") and "operations" in context.dimensions:
        hint = "leave the duration out: each variant ends after its number of operations"
        context.add_mistake(("measure", "duration"), "`measure.duration` and vary.operations cannot be combined", hint)
    if measure.duration is None and measure.operations is None and "operations" not in context.dimensions:
        measure = measure.model_copy(update={"duration": DURATION_SECONDS})
        context.fill_in(measure=measure)
    check_pilot(context, measure)
    needed = context.experiment.warmup_seconds + (measure.duration or 0) * (3 if context.experiment.pilot else 1)
    if timeout is not None and timeout <= needed and context.is_valid("measure"):
        message = f"timeout is {format_seconds(timeout)}, but warm-up and window alone take {format_seconds(needed)}"
        context.add_warning(
            ("timeout",), message, f"set it to more than {format_seconds(needed)}, with time for loading"
        )


# The keys that determine the length of a steady workload's measurement.
OF_STEADY = ("warmup", "duration", "operations")


def check_ledger(context: Context) -> None:
    """Checks that values identify their writes, as a ledger requires, and that each trial loads its data."""
    experiment = context.experiment
    if not experiment.measure.ledger:
        return
    path = ("measure", "ledger")
    if kinds := sorted(kind for kind in experiment.kinds if not KINDS[kind].ledger):
        able = " and ".join(kind for kind in KINDS if KINDS[kind].ledger)
        message = f"`measure.ledger` records writes of {able}, not of {kinds[0]}"
        context.add_mistake(path, message, "leave it out")
    if experiment.measure.verify:
        hint = "leave `verify` out: with a ledger, every value read is checked as well"
        context.add_mistake(path, "`measure.ledger` and `measure.verify` cannot be combined", hint)
    if experiment.load.reuse:
        hint = "leave `load.reuse` out: values of other trials would be mistaken for this trial's values"
        context.add_mistake(path, "`measure.ledger` and `load.reuse` cannot be combined", hint)


def check_steady(context: Context) -> bool:
    """Whether `measure` determines the end of a trial.

    Work of fixed size has no steady state, and it has a warm-up only if its figures are a time series.
    """
    kinds = {workload.kinds[0] for workload in context.experiment.all_workloads.values() if len(workload.kinds) == 1}
    ending = sorted(kind for kind in kinds if not KINDS[kind].steady)
    if not ending:
        return True
    if len(ending) < len(kinds):
        other_kinds = ", ".join(sorted(kinds - {*ending}))
        message = f"`workloads` mixes work of fixed size ({', '.join(ending)}) with {other_kinds}"
        context.add_mistake(("workloads",), message, "write one experiment for each kind of workload")
    passed = {key for kind in ending for key in KINDS[kind].passed}
    for key in OF_STEADY:
        if getattr(context.experiment.measure, key) and key not in passed:
            message = f"measure.{key} has no effect: {ending[0]} ends when its work is done"
            hint = f"leave it out, and set the amount of work with the keys of `{ending[0]}`"
            context.add_mistake(("measure", key), message, hint)
    for path in (("pilot",), ("find",), ("rate",)):
        if context.is_set(*path) and context.experiment.pilot is not False and path[0] not in passed:
            message = f"`{path[0]}` needs a steady workload, but {ending[0]} ends when its work is done"
            context.add_mistake(path, message, f"leave `{path[0]}` out")
    unused = {key: None for key in ("duration", "operations") if key not in passed}
    warmup = context.experiment.measure.warmup if "warmup" in passed else None
    measure = context.experiment.measure.model_copy(update={"warmup": warmup or 0.0, **unused})
    context.fill_in(measure=measure, pilot=False)
    return False


def check_pilot(context: Context, measure: Measure) -> None:
    """Decides whether there is a pilot block; without a pilot block, the warm-up has a default."""
    experiment = context.experiment
    constant = not (experiment.find or experiment.faults or experiment.stages)
    possible = constant and measure.duration is not None
    if experiment.pilot and (measure.warmup is not None or not possible):
        reason = "with `find`" if experiment.find else "with `faults`" if experiment.faults else ""
        reason = reason or ("with `rate.stages`" if experiment.stages else "")
        reason = reason or ("" if possible else "without `measure.duration`")
        message = f"there can be no pilot block {reason}" if reason else FINDS_WARMUP
        context.add_mistake(("pilot",), message, "leave `pilot` out")
    pilot = possible and measure.warmup is None and experiment.pilot is not False
    if measure.warmup is None and not pilot and not experiment.faults:
        measure = measure.model_copy(update={"warmup": WARMUP_SECONDS})
    context.fill_in(measure=measure, pilot=pilot)


def check_repeats(context: Context) -> None:
    """Checks that the bounds on repeats are in order and have an effect."""
    repeats = context.experiment.repeats
    # A search has separate defaults.
    is_given = context.is_valid("repeats") and context.experiment.find is None
    if repeats.at_most is None:
        at_most = repeats.at_least * (1 if repeats.until is None else AT_MOST_FACTOR)
        context.fill_in(repeats=repeats.model_copy(update={"at_most": at_most}))
    elif repeats.at_most < repeats.at_least:
        message = f"repeats.at_most is {repeats.at_most}, less than at_least ({repeats.at_least})"
        context.add_mistake(("repeats", "at_most"), message, f"write {repeats.at_least} or more")
    elif repeats.at_most > repeats.at_least and repeats.until is None and is_given:
        message = "repeats.at_most has no effect without `until`"
        context.add_warning(("repeats", "at_most"), message, "set how narrow the interval must be: `until: 5%`")
    if repeats.at_least < REPEATS_MIN and context.experiment.find is None:
        verb = "is" if repeats.at_least == 1 else "are"
        message = f"{units.count_noun(repeats.at_least, 'repeat')} {verb} too few for any claim"
        context.add_warning(("repeats",), message, f"use at least {REPEATS_MIN}")


def check_pace(context: Context) -> None:
    """Warns if `arrival` is set without a rate."""
    experiment = context.experiment
    searched = experiment.find is not None and experiment.find.over == "rate"
    has_rate = experiment.rate is not None or "rate" in context.dimensions or searched
    if (
        not has_rate
        and not any(context.changing_rates())
        and (experiment.arrival != "uniform" or "arrival" in context.dimensions)
    ):
        context.add_warning(("arrival",), "arrival has no effect in a closed loop", "set a `rate`")
