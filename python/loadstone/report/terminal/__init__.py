"""Results on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Literal

from rich.console import Console

PIPE_WIDTH = 200


def standard_output() -> Console:
    """Standard output; if it is not a terminal, it has a large fixed width."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    # Texts from files are plain: [/dev/sda] is not markup, and :x: is not an emoji.
    # Without a colour system, Rich writes no escape sequences; NO_COLOR alone would keep bold (https://no-color.org).
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(highlight=False, markup=False, emoji=False, width=width, color_system=system)
