"""`loadstone serve [DIR]` shows results, and a run while it is being measured, in the browser."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.errors import LoadstoneError
from loadstone.results import archive
from loadstone.results.folder import ROOT, is_like_folder, list_paths

MISSING = "install the packages for the page: pip install starlette uvicorn"


@guard_command
def main(arguments: list[str]) -> int:
    """Serves the page and the metrics until Ctrl-C."""
    parser = CommandParser(
        "serve",
        "Show results in the browser: a running experiment second by second, all results, comparisons and reports.",
        "The address contains a token. The server reads result folders and changes nothing.",
    )
    parser.add_argument(
        "root",
        metavar="DIR",
        type=Path,
        nargs="?",
        default=ROOT,
        help="result folders, or an archive of one (default: %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="the port of the page (default: any)")
    parser.add_argument(
        "--metrics-port", metavar="PORT", type=int, help="serve OpenMetrics on this port, without a token"
    )
    parser.add_argument("--no-token", action="store_true", help="allow every process on this host to read the page")
    parser.add_argument(
        "--follow", metavar="DIR", type=Path, help="the run whose metrics are served (default: the run in progress)"
    )
    parser.add_argument("--child", action="store_true", help="exit together with the parent process")
    parser.add_argument("--metrics-only", action="store_true", help="do not serve the page")
    options = parser.parse_args(arguments)
    if options.no_token and options.host not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError("--no-token needs a loopback address", "omit --no-token or --host")
    root = options.root
    if archive.is_archive(root):
        # An archive's files are below `<experiment>/<time>/`.
        root = archive.unpack_archive(root).path.parents[1]
    if not root.is_dir():
        raise LoadstoneError(f"{root} is not a directory", "name a directory of results, or an archive (.zip)")
    if not list_paths(root) and (above := find_root(root)) is not None:
        hint = f"`loadstone serve {above}` shows all results; `loadstone report {root}` writes one report"
        raise LoadstoneError(f"{root} is one result, not a directory of results", hint)
    require_packages()
    from loadstone.live.server import ServerOptions, serve_pages

    serve_pages(
        ServerOptions(
            root,
            options.host,
            options.port,
            options.metrics_port,
            options.follow,
            has_token=not options.no_token,
            has_page=not options.metrics_only,
        ),
        is_child=options.child,
    )
    return 0


def require_packages() -> None:
    """Raises LoadstoneError if a package of the live page is missing."""
    try:
        import starlette.applications  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise LoadstoneError(f"the live page and the metrics need the package {error.name}", MISSING) from None


def find_root(path: Path) -> Path | None:
    """The directory of results above a result folder or an experiment's folder; None for any other path."""
    if is_like_folder(path):
        return path.parents[1] if len(path.parents) > 1 else path.resolve().parents[1]
    is_experiment = any(is_like_folder(inner) for inner in path.iterdir())
    return (path.parent if path.name else path.resolve().parent) if is_experiment else None
