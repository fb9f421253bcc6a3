"""Certificates for servers that encrypt clients' connections; the engine creates them once per system."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loadstone.engine.program import find_engine
from loadstone.systems.base.files import program
from loadstone.systems.base.plan import read_truth
from loadstone.systems.base.system import Place, Setting, SystemPlan

SETTING = Setting("tls", "no", "encrypt clients' connections, with generated certificates: `yes` or `no`", read_truth)
FILES = ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")


def is_requested(plan: SystemPlan) -> bool:
    """Whether clients' connections are encrypted. Raises SystemsError for a value that is neither yes nor no."""
    # The plan of a system that an earlier version of Loadstone started may lack this setting.
    return SETTING.name in plan.settings and read_truth(plan, SETTING.name)


def tls_directory(place: Place) -> Path:
    """The directory with the certificates and keys."""
    return place.data / "tls"


def authority_path(place: Place) -> str:
    """The path of the CA's certificate, for clients."""
    return str(tls_directory(place) / "ca.pem")


def ensure_certificates(place: Place, hosts: Iterable[str], user: str = "client") -> Path:
    """The directory with certificates for servers on these hosts and for a client. Raises LoadstoneError."""
    files = tls_directory(place)
    if not all((files / name).exists() for name in FILES):
        command = [find_engine(), "certificates", str(files), "--user", user, "localhost", *hosts]
        program.run_program(command, "loadstone-engine certificates", "build loadstone-engine with `make`")
    return files
