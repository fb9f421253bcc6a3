"""Measures for how long a busy or virtual host did not run this process."""

from __future__ import annotations

import threading
import time
from types import TracebackType

# Without a stall, a sleep of this length ends within a few milliseconds.
SLEEP_SECONDS = 0.005
# A stall of the host beyond this length changes the figures of a test.
STALL_SECONDS = 0.1


class StallWatch:
    """Watches the host in a thread, as a context manager."""

    def __init__(self) -> None:
        # The longest delay of a sleep, in seconds.
        self.longest = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> StallWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.is_set():
            before = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            self.longest = max(self.longest, time.monotonic() - before - SLEEP_SECONDS)
