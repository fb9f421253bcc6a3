"""Templates: strings in which `{name}` is replaced by a dimension's value. `{{` and `}}` are literal braces.

`${NAME}` is an environment variable. In commands, the shell replaces it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loadstone.engine import secrets
from loadstone.results.trial_result import Scalar

Path = tuple[str | int, ...]
TOKEN = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\{\{|\}\}|\{([^{}]*)\}|[{}]")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def template_names(text: str) -> list[str]:
    """The distinct names in a template, in order. Raises ValueError with a hint if a brace is unmatched."""
    distinct: dict[str, None] = {}
    for token in TOKEN.finditer(text):
        if token.group() in ("{", "}"):
            raise ValueError(
                f'an unmatched "{token.group()}"', f"write a name as {{name}}, and a brace as {token.group() * 2}"
            )
        if token[1] is not None:
            distinct[token[1]] = None
    return list(distinct)


def environment_names(text: str) -> list[str]:
    """The environment variables in a template."""
    return VARIABLE.findall(text)


def render_template(text: str, values: Mapping[str, Scalar], *, for_shell: bool = False) -> str:
    """Replaces all names and variables; in a command, variables are left to the shell.

    Raises KeyError for a name without a value. A variable that is not set remains unchanged.
    """

    def replace_token(token: re.Match[str]) -> str:
        if token.group()[0] == "$":
            return token.group() if for_shell else _read_variable(token.group())
        return token.group()[0] if token[1] is None else as_text(values[token[1]])

    return TOKEN.sub(replace_token, text)


def render_partly(text: str, values: Mapping[str, Scalar]) -> str:
    """Replaces the names that have values; other names remain in the template."""

    def replace_known(token: re.Match[str]) -> str:
        name = token[1]
        return escape_braces(as_text(values[name])) if name is not None and name in values else token.group()

    return TOKEN.sub(replace_known, text)


def render_strings(value: Any, render: Callable[[str], str]) -> Any:
    """Renders every string in plain values."""
    if isinstance(value, str):
        return render(value)
    if isinstance(value, dict):
        return {key: render_strings(item, render) for key, item in value.items()}
    return [render_strings(item, render) for item in value] if isinstance(value, list | tuple) else value


def list_strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yields every string in plain values, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_strings(item, (*path, key))


def escape_braces(text: str) -> str:
    """A template that renders to this string."""
    return text.replace("{", "{{").replace("}", "}}")


def as_text(value: Scalar) -> str:
    """A value as written in commands, paths and properties: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_variable(token: str) -> str:
    variable = token[2:-1]
    value = os.environ.get(variable)
    if value is None:
        return token
    secrets.keep_secret(variable, value)
    return value
