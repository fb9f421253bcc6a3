"""Directories that a system makes outside of its own, on storage that the user named.

They go with the system's data. Their names are drawn anew with those, so that no server ever finds what one of an
earlier life has left.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from loadstone.systems.base.system import Place


def label(place: Place) -> str:
    """What a system's directories outside are called: `loadstone-hdfs-5f0c2a91`, the same until its data go."""
    path = place.data / "label"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(f"loadstone-{place.root.name}-{secrets.token_hex(4)}")
        partial.replace(path)
    return path.read_text()


def directory(place: Place, base: Path) -> Path:
    """The system's directory in one that the user named; it need not be there yet."""
    return base / label(place)
