"""Hides secrets in text: passwords in URLs, and values of variables such as `DB_PASSWORD` that an experiment uses.

A password in a property is recognised by the property's name (`describe_engine().is_secret`), and a password in a URL
by its position. A secret inside another text, such as the JVM's arguments, is recognised only by its value. Values are
therefore kept here, and all output is searched for them. Like the environment, the list belongs to this process.
"""

from __future__ import annotations

import json
import re

from loadstone.engine.describe import HIDDEN

# Matches the names of variables with secret values.
NAME = re.compile(r"pass|secret|token|credential|(^|_)(key|pw|pwd|auth)(_|$)", re.IGNORECASE)
# The passwords in `jdbc:postgresql://h/d?user=u&password=p` and `redis://u:p@h`, but not variables (`${NAME}`).
IN_URL = re.compile(
    r"""([?&;]\w*passw(?:or)?d=)(?!\$\{)[^\s&;"']+|(://[^\s/:@"']*:)(?!\$\{)[^\s/@"']+(?=@)""", re.IGNORECASE
)
# A secret shorter than this is hidden only if it is the whole text, because hiding every `1` would ruin a file.
PART_MIN = 4
_VALUES: set[str] = set()


def keep_secret(variable: str, value: str) -> None:
    """Registers a variable's value if the variable's name marks it as secret."""
    if value and NAME.search(variable):
        _VALUES.add(value)


def has_secret(text: str) -> bool:
    """Whether text contains a secret."""
    return hide_secrets(text) != text


def hide_secrets(text: str) -> str:
    """Hides the secrets in text, including secrets in JSON notation."""
    if text in _VALUES:
        return HIDDEN
    for value in sorted(_VALUES, key=len, reverse=True):
        if len(value) >= PART_MIN:
            for written in (value, json.dumps(value)[1:-1]):
                text = text.replace(written, HIDDEN)
    return IN_URL.sub(lambda match: f"{match[1] or match[2]}{HIDDEN}", text)
