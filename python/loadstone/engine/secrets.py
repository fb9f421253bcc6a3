"""Values of the environment that are secret: what a variable such as `DB_PASSWORD` gave to an experiment.

A password under a property's own name is known by that name (`description().is_secret`). One that is put into another
text, a URL or the JVM's arguments, is known only by its value, so that is what is kept here and looked for wherever
something is written. It is of this process, as the environment is.
"""

from __future__ import annotations

import json
import re

from loadstone.engine.describe import HIDDEN

# Names of variables whose value is secret.
NAME = re.compile(r"pass|secret|token|credential|(^|_)(key|pw|pwd|auth)(_|$)", re.IGNORECASE)
# A shorter secret is hidden only where it is all there is: to cut every `1` out of a file would leave none.
PART_MIN = 4
_VALUES: set[str] = set()


def keep(variable: str, value: str) -> None:
    """Notes what a variable gave, if its name tells that it is secret."""
    if value and NAME.search(variable):
        _VALUES.add(value)


def holds(text: str) -> bool:
    """Whether a secret stands in a text."""
    return hidden(text) != text


def hidden(text: str) -> str:
    """A text without the secrets in it, also as JSON writes them."""
    if text in _VALUES:
        return HIDDEN
    for value in sorted(_VALUES, key=len, reverse=True):
        if len(value) >= PART_MIN:
            for written in (value, json.dumps(value)[1:-1]):
                text = text.replace(written, HIDDEN)
    return text
