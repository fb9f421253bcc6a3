"""Directories that a system makes outside of its own, on storage that the user named.

They go with the system's data. Their names are drawn anew with those, so that no server ever finds what one of an
earlier life has left.
"""

from __future__ import annotations

import secrets

from loadstone.results import lines
from loadstone.systems.base.system import Place


def label(place: Place) -> str:
    """What a system's directories outside are called: `loadstone-hdfs-5f0c2a91`, the same until its data go."""
    path = place.data / "label"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines.replace(path, f"loadstone-{place.root.name}-{secrets.token_hex(4)}".encode())
    return path.read_text()
