"""Validates `find`: the objective, the bounds, and keys that conflict with a search."""

from __future__ import annotations

from loadstone.experiment.model.experiment import FindKeys
from loadstone.experiment.validation.context import Context
from loadstone.experiment.validation.figures import check_metric
from loadstone.format import units
from loadstone.search import rule
from loadstone.search.objective import parse_objective

# A search repeats until each decision is certain, so it starts with fewer repeats than a comparison.
FACTOR = rule.AT_MOST // rule.AT_LEAST


def check_find(context: Context) -> None:
    """Validates `find`, and fills in its defaults and the defaults of repeats."""
    find = context.experiment.find
    if find is None:
        return
    if context.is_valid("find", "such_that") and find.such_that is not None:
        check_objective(context, find.such_that)
    check_bounds(context, find)
    check_contradictions(context, find)
    complete_repeats(context)


def check_objective(context: Context, text: str) -> None:
    """Checks that the objective can be parsed, and that its figures are valid."""
    path = ("find", "such_that")
    try:
        parsed = parse_objective(text)
    except ValueError as error:
        message, hint = error.args
        context.add_mistake(path, f"find.such_that: {message}", hint)
        return
    for term in parsed.terms:
        check_metric(context, path, term.metric)


def check_bounds(context: Context, find: FindKeys) -> None:
    """Checks that the bounds are at least a factor of two apart; fills in missing bounds."""
    ends = {key: getattr(find, key) for key in ("from", "to")}
    first, last = rule.BOUNDS[find.over]
    low = first if ends["from"] is None else ends["from"]
    high = max(last, low * 2) if ends["to"] is None else ends["to"]
    for key, value in ends.items():
        if find.over == "clients" and value is not None and not isinstance(value, int):
            message = f"find.{key} must be a whole number of clients, got {value}"
            context.add_mistake(("find", key), message, f"write {round(value)}")
    if high < low * 2 and context.is_valid("find"):
        message = f"find.to is {units.format_load(high)}, less than twice find.from ({units.format_load(low)})"
        context.add_mistake(
            ("find", "to"), message, f"write {units.format_load(low * 2)} or more: a search doubles the load"
        )
    bounds = {key: int(value) if value == int(value) else value for key, value in (("from", low), ("to", high))}
    context.fill_in(find=find.model_copy(update=bounds))


def check_contradictions(context: Context, find: FindKeys) -> None:
    """Checks that the searched load is neither varied nor set."""
    experiment, over = context.experiment, find.over
    if over in context.dimensions:
        context.add_mistake(("vary",), f"`find` searches over {over}, and vary.{over} varies it", "keep one of them")
    elif context.is_set(over):
        message = f"`{over}` has no effect, because `find` searches over it"
        context.add_warning((over,), message, f"leave `{over}` out, or write find.from and find.to")
    if over == "clients" and (experiment.rate is not None or "rate" in context.dimensions):
        hint = "leave the rate out to search in a closed loop, or write `over: rate`"
        context.add_mistake(("find", "over"), "`find` searches over clients, but a rate is set", hint)
    for path in context.changing_rates():
        context.add_mistake(path, f"{path[-1]} and `find` cannot be combined", "keep one of them")


def complete_repeats(context: Context) -> None:
    """Fills in the repeats of a search, which do not depend on `until`."""
    repeats = context.experiment.repeats
    at_least = repeats.at_least if context.is_set("repeats", "at_least") else rule.AT_LEAST
    at_most = repeats.at_most or at_least * FACTOR
    if repeats.until is not None and context.is_valid("repeats"):
        hint = "leave it out: a search repeats until each of its decisions is certain"
        context.add_warning(("repeats", "until"), "repeats.until has no effect with `find`", hint)
    context.fill_in(repeats=repeats.model_copy(update={"at_least": at_least, "at_most": at_most, "until": None}))
