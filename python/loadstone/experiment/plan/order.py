"""The order of trials: in each block every variant once, in an order that follows from the seed alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from loadstone.experiment.model.template import spoken
from loadstone.experiment.model.values import Scalar

SLUG_MAX = 60
UNSAFE = re.compile(r"[^a-z0-9._+]+")
DIGITS_MIN = 4


def key(config: Mapping[str, Scalar]) -> str:
    """A variant's own name in the draw: it does not depend on where the file lists it."""
    return json.dumps(dict(config), sort_keys=True, separators=(",", ":"))


def permutation(keys: Sequence[str], seed: int, repeat: int) -> list[int]:
    """A random order of the variants, by their index.

    Sorting by SHA-256 of seed, repeat and key draws every order with the same chance, and stays what it is in every
    version of Python, so that a run can be resumed years later.
    """
    draws = [hashlib.sha256(f"{seed}/{repeat}/{each}".encode()).digest() for each in keys]
    return sorted(range(len(keys)), key=draws.__getitem__)


def slug(config: Mapping[str, Scalar], varied: Sequence[str]) -> str:
    """A variant in a file's name: `lmdb-a-clients2`. Not unique by itself."""
    words = []
    for dimension in varied:
        value = config[dimension]
        word = spoken(value)
        # A number says nothing without its dimension.
        words.append(word if isinstance(value, str) and not word.replace(".", "").isdigit() else f"{dimension}{word}")
    text = "-".join(UNSAFE.sub("-", word.lower()).strip("-.") for word in words)
    if len(text) > SLUG_MAX:
        # A number that is cut would be read as another.
        whole, _, cut = text[: SLUG_MAX + 1].rpartition("-")
        text = whole or cut[:SLUG_MAX]
    return text.strip("-.") or "trial"


def trial_name(order: int, digits: int, slug: str, repeat: int) -> str:
    """`0012-lmdb-a-r3`: the order number makes it unique, the rest says what it is."""
    return f"{order:0{digits}}-{slug}-r{repeat}"
