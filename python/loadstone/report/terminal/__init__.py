"""Results on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Literal

from rich.console import Console

PIPE_WIDTH = 200


def standard_output() -> Console:
    """Standard output; anything but a terminal is as wide as needed."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    # The contents of files are plain text: [/dev/sda] is not markup, and :x: is not an emoji.
    # Without a colour system, Rich writes no escape at all; NO_COLOR alone leaves bold (https://no-color.org).
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(highlight=False, markup=False, emoji=False, width=width, color_system=system)
