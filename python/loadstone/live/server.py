"""The server of the live page: pages, server-sent events, and metrics on a second port.

It is a separate process that reads result folders, so viewers do not disturb a trial. It is read-only: no request
changes anything.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.live import metrics, pages
from loadstone.live.catalogue import UNREADABLE, ResultCatalogue, identify_folder
from loadstone.live.run import FollowedRun
from loadstone.live.trial import Attempt
from loadstone.report.markup import countable
from loadstone.results.folder import Folder

WILDCARDS = ("0.0.0.0", "::", "[::]")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
# The time between two reads of the files while a page is open: the engine reports once a second.
POLL_SECONDS = 1.0
# The time between two reads while a page that was opened late has not yet received all earlier data.
CATCH_UP_SECONDS = 0.05
# The time for which viewers can still see the end of the run after the lab has exited.
FAREWELL_SECONDS = 60.0
TOKEN = "token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self';"
    " frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# A report may come from elsewhere, so its scripts must not read other pages with the viewer's cookie.
SANDBOX = "sandbox allow-scripts allow-downloads"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class ServerOptions:
    """The content to serve, and the addresses and protection of the server."""

    root: Path
    host: str = "127.0.0.1"
    port: int = 0
    # None if metrics are not served.
    metrics_port: int | None = None
    # The folder of the run that started this server.
    follow: Path | None = None
    # Whether all requests, except requests for metrics, require the token.
    has_token: bool = True
    # Whether the page is served, rather than only the metrics.
    has_page: bool = True


@dataclass(frozen=True)
class RunReading:
    """The state of a run when its files were last read. All viewers receive the same object."""

    # The state as JSON, and the remaining time.
    text: str = ""
    left: str = ""
    attempt: Attempt | None = None
    # The start of the attempt's window, and the numbers of changed points and of host samples in the attempt.
    start_unix_ns: int | None = None
    changes: int = 0
    samples: int = 0


class Watcher:
    """One followed run, which is read once for all viewers."""

    def __init__(self, folder: Folder) -> None:
        self.run = FollowedRun(folder)
        # The current and the previous attempt, for metrics.
        self.attempts: list[Attempt] = []
        self._lock = threading.Lock()
        self._read = 0.0
        self._reading = RunReading()
        self._state: dict[str, Any] = {}
        self._text = self._points_text = ""
        self._points_key: tuple[RunReading, int, int] | None = None

    def read_run(self) -> RunReading:
        """Reads new data, unless another viewer has just done so."""
        with self._lock:
            if self.run.is_behind or time.monotonic() >= self._read + POLL_SECONDS / 2:
                self.run.read_new()
                current = self.run.current
                if current is not None and current not in self.attempts:
                    self.attempts = [*self.attempts[-1:], current]
                state = self.run.page_state()
                if state is not self._state:
                    self._state, self._text = state, json.dumps(countable(state))
                seconds = self.run.estimate_seconds_left(time.time_ns()) if state["running"] else None
                self._reading = RunReading(self._text, "" if seconds is None else units.format_clock(seconds))
                if current is not None:
                    start, changes, samples = current.start_unix_ns, len(current.changes), len(current.hosts)
                    self._reading = replace(
                        self._reading, attempt=current, start_unix_ns=start, changes=changes, samples=samples
                    )
                self._read = time.monotonic()
            return self._reading

    def points_since(self, reading: RunReading, change: int, sample: int) -> str:
        """The event with the points after the first `change` changes, and the host samples from number `sample`
        onwards. Viewers that have received the same points share one text."""
        key = reading, change, sample
        if reading.attempt is not None and self._points_key != key:
            hosts: list[dict[str, Any]] = []
            if (start := reading.start_unix_ns) is not None:
                hosts = reading.attempt.host_points(sample, start)[: reading.samples - sample]
            points = reading.attempt.list_points(change, reading.changes)
            self._points_text = write_event("points", {"points": points, "first": sample, "hosts": hosts})
            self._points_key = key
        return self._points_text

    def plan_since(self, first: int) -> tuple[str, int]:
        """The plan's rows that changed after the first `first` changes, as JSON (empty if none), and the new number of
        changes."""
        with self._lock:
            count = len(self.run.changes)
            names = self.run.rows if first == 0 else dict.fromkeys(self.run.changes[first:])
            rows = [self.run.rows[name] for name in names]
            text = json.dumps(countable({"whole": first == 0, "rows": rows})) if rows else ""
            return text, count

    def render_metrics(self) -> str:
        """The metrics of the run."""
        self.read_run()
        with self._lock:
            return metrics.render_metrics(self.run, self.attempts)


class Guard:
    """Refuses foreign hosts, cross-site requests and wrong tokens, and adds headers.

    It is plain ASGI middleware, because Starlette's base class would send every server-sent event through two queues.
    """

    def __init__(self, app: ASGIApp, refuse: Callable[[Request], Response | None]) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer: ASGIApp = self._refuse(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)


class PatientServer(uvicorn.Server):
    """A server that checks every second whether it must stop.

    Uvicorn's own loop checks ten times a second, and each check uses CPU time of the host that is measured.
    """

    async def main_loop(self) -> None:
        """Runs until a signal arrives."""
        while not await self.on_tick(0):
            await asyncio.sleep(POLL_SECONDS)


class LiveSite:
    """The request handlers for all pages, and their state."""

    def __init__(self, options: ServerOptions, token: str) -> None:
        self.options, self.token = options, token
        self.catalogue = ResultCatalogue(options.root)
        self.watchers: dict[str, Watcher] = {}
        self.cookie = f"loadstone_{options.port}"
        self.viewers = 0
        self._followed = None if options.follow is None else Folder(options.follow)

    def watcher_of(self, folder: Folder) -> Watcher:
        """The watcher of a folder, which is created when it is first needed."""
        return self.watchers.setdefault(str(folder.path), Watcher(folder))

    def folder_of(self, request: Request) -> Folder | None:
        """The folder that a request names; None if there is no such folder."""
        name = f"{request.path_params['experiment']}/{request.path_params['time']}"
        return self.catalogue.find_folder(name)

    @property
    def find_followed(self) -> Folder | None:
        """The run that started this server, else a run in progress, else the latest run."""
        if self._followed is not None:
            return self._followed
        rows = [row for row in self.catalogue.list_rows() if row["verdict"] != UNREADABLE]
        row = next((row for row in rows if row["running"]), rows[0] if rows else None)
        return None if row is None else self.catalogue.find_folder(row["id"])

    def build_app(self) -> Starlette:
        """Builds the web application."""
        routes = [
            Route("/metrics", self.serve_metrics),
            Route("/", self.serve_index),
            Route("/runs.json", self.serve_runs),
            Route("/compare", self.serve_comparison),
            Route("/static/{name}", self.serve_file),
            Route("/run/{experiment}/{time}", self.run_page),
            Route("/run/{experiment}/{time}/events", self.serve_events),
            Route("/run/{experiment}/{time}/report", self.serve_report),
        ]
        return Starlette(
            routes=routes, middleware=[Middleware(Guard, refuse=self.refuse_request)], lifespan=self.judge_in_background
        )

    @asynccontextmanager
    async def judge_in_background(self, _: Starlette) -> AsyncIterator[None]:
        """Judges results in the background while the page is served."""
        if self.options.has_page:
            self.catalogue.start()
        yield
        self.catalogue.stop()

    def refuse_request(self, request: Request) -> Response | None:
        """The response that refuses a request, or sets the cookie and redirects; None if the request is allowed."""
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if host not in {*LOOPBACK, self.options.host} and not (self.options.host in WILDCARDS and is_own_name(host)):
            # Any other name that resolves to this host belongs to a different site (DNS rebinding).
            return PlainTextResponse("unknown host", 400)
        server = request.scope.get("server") or ("", 0)
        is_metrics = request.url.path == "/metrics"
        if self.options.metrics_port is not None and server[1] == self.options.metrics_port:
            return None if is_metrics else PlainTextResponse("this port serves only /metrics", 404)
        if is_metrics or not self.options.has_page:
            return PlainTextResponse("not found", 404)
        requested = request.query_params.get(TOKEN)
        if self.options.has_token and requested is not None and request.url.path == "/":
            if not hmac.compare_digest(requested.encode(), self.token.encode()):
                return PlainTextResponse("wrong token: open the address that loadstone printed", 403)
            name = "" if self._followed is None else identify_folder(self._followed.path)
            place = (
                f"/run/{pages.quote_identity(name)}" if name and self.catalogue.find_folder(name) is not None else "/"
            )
            response = RedirectResponse(place, 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        foreign = request.headers.get("origin", "").rpartition("://")[2] not in ("", request.headers.get("host"))
        if foreign or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("cross-site request refused", 403)
        known = request.cookies.get(self.cookie, "")
        if self.options.has_token and not hmac.compare_digest(known.encode(), self.token.encode()):
            return PlainTextResponse("a token is needed: open the address that loadstone printed", 403)
        return None

    def serve_metrics(self, _: Request) -> Response:
        """Serves the metrics of the followed run in the OpenMetrics format."""
        folder = self.find_followed
        if folder is None:
            return PlainTextResponse(metrics.render_metrics(None, []), media_type=metrics.CONTENT_TYPE)
        return Response(self.watcher_of(folder).render_metrics(), headers={"Content-Type": metrics.CONTENT_TYPE})

    def serve_index(self, _: Request) -> Response:
        """Serves the list of all runs."""
        return HTMLResponse(pages.index_page(self.catalogue.list_rows()))

    def serve_runs(self, _: Request) -> Response:
        """Serves the list of all runs as JSON."""
        return JSONResponse(self.catalogue.list_rows())

    def run_page(self, request: Request) -> Response:
        """Serves the page of one run."""
        folder = self.folder_of(request)
        if folder is None:
            return respond_not_found()
        return HTMLResponse(pages.run_page(folder, has_report=has_report(folder)))

    def serve_report(self, request: Request) -> Response:
        """Serves the existing report, or a new report if none has been written."""
        folder = self.folder_of(request)
        if folder is None:
            return respond_not_found()
        path = folder.path / "report.html"
        try:
            is_written = has_report(folder)
            text = path.read_text(encoding="utf-8", errors="replace") if is_written else pages.report_page([folder])
        except LoadstoneError as error:
            return PlainTextResponse(str(error), 409)
        return HTMLResponse(text, headers={"Content-Security-Policy": SANDBOX})

    def serve_comparison(self, request: Request) -> Response:
        """Serves the report on several runs together, with the first run as the baseline."""
        folders = [self.catalogue.find_folder(name) for name in request.query_params.getlist("run")]
        known = [folder for folder in folders if folder is not None]
        if len(known) < 2 or len(known) < len(folders):
            return PlainTextResponse("choose at least two results", 400)
        try:
            text = pages.report_page(known)
        except LoadstoneError as error:
            return PlainTextResponse(str(error), 409)
        return HTMLResponse(text, headers={"Content-Security-Policy": SANDBOX})

    def serve_file(self, request: Request) -> Response:
        """Serves a script of the pages, whose name contains a digest of its content."""
        content = pages.find_program(request.path_params["name"])
        if content is not None:
            headers = {"Cache-Control": "max-age=31536000, immutable"}
            return Response(content, media_type="text/javascript; charset=utf-8", headers=headers)
        return respond_not_found()

    async def serve_events(self, request: Request) -> Response:
        """Serves server-sent events: first the whole state, then changes; a reconnecting client starts over."""
        folder = await asyncio.to_thread(self.folder_of, request)
        if folder is None:
            return respond_not_found()
        stream = self.stream_events(self.watcher_of(folder), request)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def stream_events(self, watcher: Watcher, request: Request) -> AsyncIterator[str]:
        """The events for one viewer."""
        self.viewers += 1
        # The numbers of changed points and of host samples sent so far, and the start of the window on which the times
        # of samples are based.
        sent_points, sent_samples, start = 0, 0, None
        sent, left, changes = "", None, 0
        attempt: Attempt | None = None
        try:
            while not await request.is_disconnected():
                reading = await asyncio.to_thread(watcher.read_run)
                # All events of one reading are sent at once.
                text = ""
                if left is None or reading.attempt is not attempt:
                    # A further attempt at the same trial also begins without points.
                    sent_points, sent_samples, start, attempt = 0, 0, None, reading.attempt
                    text += write_event("begin", {"trial": "" if attempt is None else attempt.trial})
                if reading.text != sent:
                    sent = reading.text
                    plan, changes = await asyncio.to_thread(watcher.plan_since, changes)
                    text += (f"event: plan\ndata: {plan}\n\n" if plan else "") + f"event: state\ndata: {sent}\n\n"
                if reading.left != left:
                    left = reading.left
                    text += write_event("left", {"text": left})
                if reading.changes > sent_points:
                    if reading.start_unix_ns != start:
                        sent_samples, start = 0, reading.start_unix_ns
                    text += watcher.points_since(reading, sent_points, sent_samples)
                    sent_points, sent_samples = reading.changes, reading.samples if start is not None else 0
                # A comment lets both ends detect a broken connection.
                yield text or ": \n\n"
                await asyncio.sleep(CATCH_UP_SECONDS if watcher.run.is_behind else POLL_SECONDS)
        finally:
            self.viewers -= 1


def has_report(folder: Folder) -> bool:
    """Whether a report has been written. A link in a foreign folder must not show a file from another directory."""
    path = folder.path / "report.html"
    return path.is_file() and path.resolve().is_relative_to(folder.path.resolve())


def write_event(name: str, data: Any) -> str:
    """The text of one server-sent event."""
    return f"event: {name}\ndata: {json.dumps(countable(data))}\n\n"


def is_own_name(host: str) -> bool:
    """Whether a name in a request is an address or this host's name, which no other site can claim."""
    with suppress(ValueError):
        return bool(ip_address(host.strip("[]")))
    return host.lower() in {socket.gethostname().lower(), socket.getfqdn().lower()}


def respond_not_found() -> Response:
    """The response to a request for something that does not exist."""
    return PlainTextResponse("not found", 404)


def open_listener(host: str, port: int) -> socket.socket:
    """A listening socket. Raises LoadstoneError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        # From now on, clients can connect; they wait until the server is ready.
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        hint = "choose another port, or 0 for any free port"
        reason = error.strerror if isinstance(error, OSError) else "ports are 0 to 65535"
        raise LoadstoneError(f"cannot listen on {host}:{port}: {reason}", hint) from error
    return listener


def serve_pages(options: ServerOptions, *, is_child: bool = False) -> None:
    """Serves until a signal arrives, or, as a child of the lab, until shortly after the lab exits.

    Prints the addresses of the page and of the metrics, each on a line. Raises LoadstoneError.
    """
    sockets, token = [], secrets.token_urlsafe(24)
    if options.has_page:
        sockets.append(open_listener(options.host, options.port))
        options = with_port(options, port=sockets[-1].getsockname()[1])
    if options.metrics_port is not None:
        sockets.append(open_listener(options.host, options.metrics_port))
        options = with_port(options, metrics_port=sockets[-1].getsockname()[1])
    site = LiveSite(options, token)
    if is_child and options.has_page:
        # Building the script takes two seconds of CPU time, which must not overlap with a trial.
        pages.live_program()
    place = f"[{options.host}]" if ":" in options.host else options.host
    if options.has_page:
        print(f"http://{place}:{options.port}/" + (f"?{TOKEN}={token}" if options.has_token else ""), flush=True)
    if options.metrics_port is not None:
        print(f"http://{place}:{options.metrics_port}/metrics", flush=True)
    if is_child:
        # The trial must have priority.
        with suppress(OSError):
            os.nice(10)
    config = uvicorn.Config(
        site.build_app(),
        access_log=False,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    server = PatientServer(config)
    if is_child:
        threading.Thread(target=watch_lease, args=(server, site), daemon=True).start()
    server.run(sockets=sockets)


def with_port(options: ServerOptions, **ports: int) -> ServerOptions:
    """The options with the ports that the system chose."""
    return ServerOptions(**{**vars(options), **ports})


def watch_lease(server: uvicorn.Server, site: LiveSite) -> None:
    """Stops the server after the lab has exited (standard input is closed); first gives viewers time to see the end."""
    while sys.stdin.buffer.read(1):
        pass
    until = time.monotonic() + FAREWELL_SECONDS
    while site.viewers and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    server.should_exit = True
