"""Loadstone: which data store, configuration or size handles my load, by how much, and can I trust the answer?

    import loadstone
    run = loadstone.open("results/quickstart")
    run.judgement.answer, run.figures, run.latencies("read").percentile(99.9), run.charts["throughput"]

The interface is `loadstone.api`. It is imported on first use, so that commands that do not need it start faster.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing.TYPE_CHECKING` would require the slow import of `typing`.
if TYPE_CHECKING:
    from typing import Any

    from loadstone.api import Judgement, Latencies, LoadstoneError, Percentile, Run, compare, load, open, run  # noqa: A004

__version__ = "0.2.0"
__all__ = ["Judgement", "Latencies", "LoadstoneError", "Percentile", "Run", "compare", "load", "open", "run"]


def __getattr__(name: str) -> Any:
    """Looks up a public name in `loadstone.api`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from loadstone import api

    return getattr(api, name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return [*globals(), *__all__]
