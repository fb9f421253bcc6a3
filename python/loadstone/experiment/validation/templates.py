"""Validates the names in templates: dimensions, values that every variant has, environment variables."""

from __future__ import annotations

import os
import re

from loadstone.experiment.model import template
from loadstone.experiment.reading.path import name
from loadstone.experiment.validation.context import AT_RUN_TIME, GIVEN, Context, Template
from loadstone.format.suggestion import suggestion


def check(context: Context) -> set[str]:
    """Every name in a template is defined. Returns the names that are used."""
    used: set[str] = set()
    for each in context.templates():
        for variable in () if each.later == AT_RUN_TIME else template.variables(each.text):
            if variable not in os.environ:
                hint = f"set it before the run: export {variable}=…"
                context.wrong(each.path, f"{name(each.path)} uses ${{{variable}}}, which is not set", hint)
        try:
            named = template.names(each.text)
        except ValueError as error:
            message, hint = error.args
            context.wrong(each.path, f"{name(each.path)} has {message}", hint)
            context.lost.add(each.path)
            continue
        used |= set(named)
        for word in named:
            check_named(context, each, word)
    return used


def check_named(context: Context, each: Template, word: str) -> None:
    """One name in a template."""
    given = {"rate": context.experiment.rate, "operations": context.experiment.measure.operations}
    own = [key for key in GIVEN if key not in context.dimensions and given.get(key, key) is not None]
    known = [*context.dimensions, *own, *each.later]
    if word in known:
        return
    context.lost.add(each.path)
    hint = suggestion(word, known, "the names are") + "; write {{ and }} for braces" if context.knows("vary") else ""
    if word in AT_RUN_TIME:
        hint = f"use {{{word}}} only in commands of `hooks`"
    elif word in ("rate", "operations"):
        hint = f"set {'a `rate`' if word == 'rate' else '`measure.operations`'}, or vary it"
    elif not re.fullmatch(r"[\w.-]+", word):
        hint = f"write {{{{{word}}}}} for literal braces"
    if hint:
        context.wrong(each.path, f"{{{word}}} in {name(each.path)} is not defined", hint)
