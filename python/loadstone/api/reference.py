"""Generates the reference page of the Python interface from its docstrings: `python -m loadstone.api.reference`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from loadstone import api

PAGE = Path("docs/reference/python.md")
HEAD = """\
# The Python interface

    import loadstone

This page is generated from `loadstone.api`, whose names are stable: if a meaning changes, so does the name. The package
has type annotations (`py.typed`). See also the guide [in a notebook](../guides/in-a-notebook.md).

"""


def page() -> str:
    """The text of the whole page."""
    blocks = [HEAD, inspect.cleandoc(api.__doc__ or ""), "\n\n"]
    for name in sorted(api.__all__, key=lambda name: (inspect.isclass(getattr(api, name)), name.lower())):
        public = getattr(api, name)
        blocks += describe_class(public) if inspect.isclass(public) else describe_function(f"loadstone.{name}", public)
    return "".join(blocks).rstrip() + "\n"


def describe_function(name: str, function: Any, heading: str = "##") -> Iterator[str]:
    """The section on a function: its signature, without `self`, and its documentation."""
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    # Annotations are strings, which Python prints in quotes.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=parameters)))
    yield f"{heading} `{name}`\n\n    {name.rpartition('.')[2]}{text}\n\n{inspect.getdoc(function)}\n\n"


def describe_class(kind: type) -> Iterator[str]:
    """The section on a class and its public attributes, in the order of the source."""
    yield f"## `loadstone.{kind.__name__}`\n\n{inspect.getdoc(kind)}\n\n"
    properties, methods = [], []
    for name, member in vars(kind).items():
        if name.startswith("_") and name != "__add__":
            continue
        getter = getattr(member, "fget", None) or (member.func if isinstance(member, cached_property) else None)
        if getter is not None:
            summary = " ".join((inspect.getdoc(getter) or "").split())
            properties.append(f"| `{name}` | `{getter.__annotations__.get('return', '')}` | {summary} |\n")
        elif inspect.isfunction(member):
            methods.append((name, member))
    if is_dataclass(kind):
        properties += [f"| `{field.name}` | `{field.type}` | |\n" for field in fields(kind)]
    if properties:
        # A vertical bar in a type would end the table cell.
        rows = [row.replace(" | None`", " or None`") for row in properties]
        yield from ("| property | type | meaning |\n|---|---|---|\n", *rows, "\n")
    for name, method in methods:
        yield from describe_function(f"{kind.__name__}.{name}", method, "###")


if __name__ == "__main__":
    PAGE.write_text(page())
