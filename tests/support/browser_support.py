"""A page of Loadstone in the system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playwright.sync_api import ConsoleMessage, Error, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0
POLL_MS = 50


def find() -> str | None:
    """The path of Chromium, or None if Chromium is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, path: str) -> None:
        self._playwright = sync_playwright().start()
        # CI runs as root, and Chromium then refuses to run with its sandbox.
        self._browser = self._playwright.chromium.launch(executable_path=path, chromium_sandbox=os.geteuid() != 0)
        self.page: Page = self._browser.new_page()
        self._requests: list[str] = []
        self._complaints: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._browser.close()
        self._playwright.stop()

    def open(self, file: Path | str, width: int, height: int, *, dark: bool = False, touch: bool = False) -> None:
        """Opens a page from a file or an address, and waits until the page's charts are drawn."""
        self.page.close()
        size = {"width": width, "height": height}
        self.page = self._browser.new_page(viewport=size, is_mobile=touch)  # type: ignore[arg-type]
        self.page.set_default_timeout(SECONDS * 1000)
        self._requests, self._complaints = [], []
        self.page.on("request", self._record_request)
        self.page.on("console", self._record_message)
        self.page.on("pageerror", lambda error: self._complaints.append(str(error)))
        self.dark(dark)
        self.page.goto(file if isinstance(file, str) else file.resolve().as_uri())
        self.wait("!document.getElementById('charts') || document.documentElement.dataset.drawn === 'all'")

    def _record_request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "file:")):
            self._requests.append(request.url)

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._complaints.append(message.text)

    def dark(self, dark: bool) -> None:
        """Changes the colour scheme."""
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def wait(self, expression: str) -> None:
        """Waits until an expression is true in the page."""
        # Playwright's wait functions evaluate code in the page, which a policy without eval forbids.
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            # During a navigation the page has no context.
            with suppress(Error):
                if self.page.evaluate(expression):
                    return
            self.page.wait_for_timeout(POLL_MS)
        raise TimeoutError(f"{expression} did not become true: {self._complaints}")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self.page.evaluate(expression)

    def requests(self) -> list[str]:
        """The addresses that the page requested, without files and embedded data."""
        return self._requests

    def complaints(self) -> list[str]:
        """Errors and warnings in the page's console."""
        return self._complaints
