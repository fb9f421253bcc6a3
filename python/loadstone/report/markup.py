"""HTML from Python: all text that is not markup is escaped."""

from __future__ import annotations

import html
import json
import math
from typing import Any

from loadstone.format.wording import replace_controls


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Text as HTML."""
    return content if isinstance(content, Markup) else Markup(html.escape(replace_controls(content)))


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """An element; `class_` becomes `class`, `data_label` becomes `data-label`; None and False are omitted."""
    attribute_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(replace_controls(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    # A `meta` element has no end tag.
    if name == "meta":
        return Markup(f"<{name}{attribute_text}>")
    return Markup(f"<{name}{attribute_text}>{join_markup(*children)}</{name}>")


def join_markup(*children: str) -> Markup:
    """Concatenates texts and elements."""
    return Markup("".join(text(child) for child in children))


def data(content: Any) -> Markup:
    """JSON that is safe in a script element, as it contains no tags or comments; NaN becomes null."""
    encoded = json.dumps(countable(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        encoded = encoded.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(encoded)


def countable(content: Any) -> Any:
    """The content with null in place of NaN and infinities, rounded floats, and no control characters."""
    if isinstance(content, float):
        # Seven digits are finer than a pixel, and take half as many bytes as all digits.
        return float(f"{content:.7g}") if math.isfinite(content) else None
    if isinstance(content, str):
        return replace_controls(content)
    if isinstance(content, dict):
        return {key: countable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [countable(value) for value in content]
    return content
