"""The default directory for data."""

from __future__ import annotations

import os
import tempfile


def default_directory() -> str:
    """TMPDIR if it is set, else /var/tmp: unlike /tmp, it is on a device nearly everywhere (FHS 3.0, 5.15)."""
    return "/var/tmp" if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK) else tempfile.gettempdir()
