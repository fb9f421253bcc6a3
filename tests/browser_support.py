"""A real browser, driven by the DevTools protocol over a pair of pipes; nothing but the standard library.

Chromium reads commands from descriptor 3 and writes answers and events to 4, each a JSON document ended by a NUL
(<https://chromedevtools.github.io/devtools-protocol/>).
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0
Message = dict[str, Any]


def find() -> str | None:
    """Where a Chromium is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="loadstone-browser-", ignore_cleanup_errors=True)
        command_end, self._commands = os.pipe()
        self._answers, answer_end = os.pipe()
        arguments = [
            path,
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={self._profile.name}",
            # Chromium refuses to run as root with its sandbox, as CI does.
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "about:blank",
        ]
        # The descriptors must be 3 and 4 in the child; a shell puts them there whatever they are here.
        script = f'exec 3<&{command_end} 4>&{answer_end}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, *arguments],
            pass_fds=(command_end, answer_end),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        os.close(command_end)
        os.close(answer_end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[Message] = []
        try:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser."""
        # Its renderers with it: the group is its own.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._selector.close()
        self._profile.cleanup()

    def ask(self, method: str, **parameters: Any) -> Message:
        """Sends a command and waits for its answer; events that come before it are kept."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._commands, rest) :]
        for answer in self._messages():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                found: Message = answer["result"]
                return found
            self.events.append(answer)
        raise AssertionError("unreachable")

    def _messages(self) -> Iterator[Message]:
        deadline = time.monotonic() + SECONDS
        while True:
            message, found, rest = self._rest.partition(b"\0")
            if found:
                self._rest = rest
                yield json.loads(message)
                continue
            if not self._selector.select(deadline - time.monotonic()):
                raise TimeoutError(f"the browser did not answer in {SECONDS:g} s")
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self._rest += chunk

    def open(self, file: Path, width: int, height: int, *, dark: bool = False, touch: bool = False) -> None:
        """Opens a page of ours and waits until its charts are drawn."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.dark(dark)
        self.events.clear()
        self.ask("Page.navigate", url=file.resolve().as_uri())
        self.wait("document.readyState === 'complete'")
        self.wait("!document.getElementById('charts') || document.documentElement.dataset.drawn === 'all'")

    def dark(self, dark: bool) -> None:
        """Changes the colour scheme."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)

    def wait(self, expression: str) -> None:
        """Waits until an expression is true in the page."""
        deadline = time.monotonic() + SECONDS
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} did not become true in {SECONDS:g} s: {self.complaints()}")
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression comes to."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Saves what is to be seen as a PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def requests(self) -> list[str]:
        """What the page asked for beside itself and what it carries within it."""
        urls = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith("data:")][1:]

    def complaints(self) -> list[str]:
        """Errors and warnings of the page."""
        said = []
        for event in self.events:
            parameters = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    said.append(json.dumps(parameters["exceptionDetails"])[:500])
                case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                    said.append(json.dumps(parameters["args"])[:500])
                case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                    said.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return said
