"""Results on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Literal

from rich.console import Console
from rich.segment import Segment

from loadstone.format.wording import replace_controls

PIPE_WIDTH = 200


class PlainConsole(Console):
    """A console for text from files, in which markup, emoji codes and control sequences have no effect."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        stream = sys.stderr if stderr else sys.stdout
        # A stream that replaces control characters would also replace the control characters of the console itself.
        file = getattr(stream, "rich_proxied_file", stream)
        super().__init__(file=file, stderr=stderr, highlight=False, markup=False, emoji=False, **options)

    def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
        """The segments of text or a table; control characters are replaced, except in Rich's own control segments."""
        for segment in super().render(*arguments, **options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(replace_controls(text), style)


def standard_output() -> Console:
    """Standard output; if it is not a terminal, it has a large fixed width."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    # Without a colour system, Rich writes no escape sequences; NO_COLOR alone would keep bold (https://no-color.org).
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return PlainConsole(width=width, color_system=system)
