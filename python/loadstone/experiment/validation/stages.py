"""Validates `rate.stages`: their rates, and the keys that conflict with a changing rate. Fills in the window."""

from __future__ import annotations

import math

from pydantic_core import PydanticCustomError

from loadstone.experiment.kind import KINDS
from loadstone.experiment.model.stages import STEP_MS, Stage, Stages, stage_rate
from loadstone.experiment.reading.path import Path, format_path
from loadstone.experiment.validation.context import Context, Template, list_template_values
from loadstone.format.parsing import format_seconds

PATH: Path = ("rate", "stages")
# The longest interval. A stage has at least INTERVALS_MIN intervals, unless they would be shorter than STEP_MS.
INTERVAL_MS_MAX, INTERVALS_MIN = 1000, 10
RATES = ("at", "from", "to")


def check_stages(context: Context) -> None:
    """Checks that every stage has a rate; fills in the lengths of the window and of its intervals."""
    stages = context.experiment.stages
    if not isinstance(context.experiment.rate, Stages) or not context.is_valid("rate"):
        return
    if not stages:
        context.add_mistake(PATH, "rate.stages is empty", "write `stages: [{for: 30s, at: 5000}]`")
        return
    check_combinations(context)
    for number, stage in enumerate(stages):
        check_stage(context, (*PATH, number), stage)
    every = [rate for stage in stages for key in RATES if (rate := getattr(stage, key)) is not None]
    if every and not any(isinstance(rate, str) or rate > 0 for rate in every):
        context.add_mistake(PATH, "rate.stages has no rate above 0", "write `at: 5000` in a stage")
    check_interval(context, [round(getattr(stage, "for") * 1e3) for stage in stages])


def check_combinations(context: Context) -> None:
    """Checks that nothing but the stages determines the rate and the length of the window."""
    experiment = context.experiment
    if "rate" in context.dimensions:
        hint = 'vary a name such as `peak`, and use it in a stage: `at: "{peak}"`'
        context.add_mistake(PATH, "`rate.stages` and vary.rate cannot be combined", hint)
    if experiment.find is not None:
        hint = "search at a constant load, and use the result in a second experiment with stages"
        context.add_mistake(("find",), "`find` and `rate.stages` cannot be combined", hint)
    if experiment.faults:
        hint = "use a constant rate with `faults`, and stages in a second experiment"
        context.add_mistake(("faults",), "`faults` and `rate.stages` cannot be combined", hint)
    if context.is_set("measure", "operations"):
        message = "`measure.operations` and `rate.stages` cannot be combined"
        context.add_mistake(("measure", "operations"), message, "leave `operations` out")
    if "operations" in context.dimensions:
        hint = "leave vary.operations out: the window is as long as the stages"
        context.add_mistake(("vary",), "vary.operations and `rate.stages` cannot be combined", hint)
    if ending := sorted(kind for kind in experiment.kinds if "rate" in KINDS[kind].passed):
        message = f"`rate.stages` needs a steady workload, but {ending[0]} ends when its work is done"
        context.add_mistake(PATH, message, "leave `rate` out")


def check_stage(context: Context, path: Path, stage: Stage) -> None:
    """Checks that a stage has either a constant rate or a ramp, and that its templates render to numbers."""
    rates = {key: value for key in RATES if (value := getattr(stage, key)) is not None}
    if not rates.keys() & {"at", "to"}:
        hint = "write `at: 5000` for a constant rate, or `to: 5000` for a ramp"
        context.add_mistake(path, f"{format_path(path)} has neither `at` nor `to`", hint)
    elif "at" in rates and len(rates) > 1:
        other = next(key for key in rates if key != "at")
        message = f"{format_path(path)} has both `at` and `{other}`"
        context.add_mistake((*path, other), message, "write `at` for a constant rate, or `from` and `to` for a ramp")
    for key, value in rates.items():
        template = Template((*path, key), str(value))
        if not isinstance(value, str) or not context.can_render(template):
            continue
        for text in sorted(list_template_values(context, template)):
            try:
                stage_rate(number_of(text))
            except PydanticCustomError as error:
                ctx = error.context or {}
                message = f"{format_path((*path, key))} {ctx.get('what')}"
                context.add_mistake((*path, key), message, str(ctx.get("hint")))


def number_of(text: str) -> float | str:
    """A rendered rate as a number; any other text is returned unchanged, and `stage_rate` rejects it."""
    try:
        return float(text)
    except ValueError:
        return text


def check_interval(context: Context, lengths_ms: list[int]) -> None:
    """Fills in the window and intervals. Each stage ends where an interval ends, so operations are counted exactly."""
    measure, length = context.experiment.measure, sum(lengths_ms) / 1e3
    # The resolved file contains both the duration and the stages.
    if measure.duration not in (None, length):
        own, sum_s = format_seconds(measure.duration or 0), format_seconds(length)
        message = f"measure.duration is {own}, but the stages take {sum_s}"
        context.add_mistake(("measure", "duration"), message, "leave `duration` out")
    measure = measure.model_copy(update={"duration": length, "operations": None})
    common = math.gcd(*lengths_ms)
    if measure.interval is None:
        longest = max(min(INTERVAL_MS_MAX, min(lengths_ms) // INTERVALS_MIN), STEP_MS)
        interval_ms = max(ms for ms in range(STEP_MS, longest + 1) if common % ms == 0)
        measure = measure.model_copy(update={"interval": interval_ms / 1e3})
    elif common % (measure.interval * 1e3) and context.is_valid("measure"):
        own = format_seconds(measure.interval)
        message = f"measure.interval is {own}, which does not divide the length of each stage"
        hint = f"leave it out, or write {format_seconds(STEP_MS / 1e3)}"
        context.add_mistake(("measure", "interval"), message, hint)
    context.fill_in(measure=measure)
