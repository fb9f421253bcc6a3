"""The order of trials: every variant once in each block, in an order that depends only on the seed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from loadstone.experiment.model.template import as_text
from loadstone.experiment.model.values import Scalar

SLUG_MAX = 60
UNSAFE = re.compile(r"[^a-z0-9._+]+")
DIGITS_MIN = 4
# The engine's seeds are 64-bit.
SEEDS = 1 << 64


def draw_key(config: Mapping[str, Scalar]) -> str:
    """The key by which a variant's place is drawn; it does not depend on the variant's position in the file."""
    return json.dumps(dict(config), sort_keys=True, separators=(",", ":"))


def draw_order(keys: Sequence[str], seed: int, repeat: int) -> list[int]:
    """A random order of the variants, as indices.

    Sorting by SHA-256 of seed, repeat and key makes every order equally likely, and gives the same order in every
    version of Python, so a run can be resumed years later.
    """
    draws = [hashlib.sha256(f"{seed}/{repeat}/{key}".encode()).digest() for key in keys]
    return sorted(range(len(keys)), key=draws.__getitem__)


def load_seed(seed: int) -> int:
    """The engine's seed for data that several trials use."""
    return seed % SEEDS


def trial_seed(seed: int, repeat: int) -> int:
    """The engine's seed for a trial: the variants of a block perform the same operations; other blocks perform
    different operations."""
    return (seed * 1_000_003 + repeat) % SEEDS


def variant_slug(config: Mapping[str, Scalar], varied: Sequence[str]) -> str:
    """A variant as part of a file name: `lmdb-a-clients2`. It need not be unique."""
    parts = []
    for dimension in varied:
        value = config[dimension]
        word = as_text(value)
        # A number is unclear without its dimension.
        parts.append(word if isinstance(value, str) and not word.replace(".", "").isdigit() else f"{dimension}{word}")
    text = "-".join(UNSAFE.sub("-", word.lower()).strip("-.") for word in parts)
    if len(text) > SLUG_MAX:
        # If a number were truncated, the name would be misread.
        whole, _, cut = text[: SLUG_MAX + 1].rpartition("-")
        text = whole or cut[:SLUG_MAX]
    return text.strip("-.") or "trial"


def trial_name(order: int, digits: int, slug: str, repeat: int) -> str:
    """A trial's name: `0012-lmdb-a-r3`. The order number makes it unique; the other parts describe the trial."""
    return f"{order:0{digits}}-{slug}-r{repeat}"
