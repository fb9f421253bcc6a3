"""The live server as users start it, and result folders for it."""

from __future__ import annotations

import http.client
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lab_support import start
from loadstone.results.folder import Folder
from loadstone.results.result_set import ResultSet

Reply = tuple[int, Mapping[str, str], str]


class Server:
    """`loadstone serve` with one client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().strip()
        assert self.address.startswith("http://"), process.communicate()
        self.host = urlsplit(self.address).netloc
        self.token = urlsplit(self.address).query.removeprefix("token=")
        self.cookie = f"loadstone_{self.host.rpartition(':')[2]}={self.token}"

    def get(self, path: str, *, method: str = "GET", host: str = "", token: bool = True, **headers: str) -> Reply:
        """The reply to a request; the path is sent unmodified."""
        connection = http.client.HTTPConnection(host or self.host, timeout=60)
        sent = {"Cookie": self.cookie} if token else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=sent)
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
        connection.close()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, text

    def events(self, path: str, number: int) -> Iterator[str]:
        """Yields the first `number` server-sent events."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        reply = connection.getresponse()
        assert reply.status == 200
        for _ in range(number):
            lines = list(iter(lambda: reply.readline().decode().rstrip("\n"), ""))
            yield "\n".join(lines)
        connection.close()


@contextmanager
def serve(home: Path, *arguments: str, root: str = "results") -> Iterator[Server]:
    """A server for results below `home`."""
    process = start(home, "serve", root, *arguments)
    try:
        yield Server(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def write_folder(path: Path, results: ResultSet) -> Folder:
    """Writes the results to a new folder."""
    folder = Folder.create_folder(path, results.name, results.question, interleaved=True)
    for block in sorted({trial.repeat for trial in results.trials}):
        folder.record_block(block, {trial.trial: trial.config for trial in results.trials if trial.repeat == block})
    for trial in results.trials:
        folder.append_trial(trial)
    return folder


def tear_line(path: Path) -> None:
    """Cuts the last line of a file, as a killed writer does."""
    os.truncate(path, path.stat().st_size - 20)


def parse_families(text: str) -> dict[str, Any]:
    """The metric families by name, parsed by Prometheus's own parser."""
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
