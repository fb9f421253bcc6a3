"""Creates PostgreSQL's cluster (its data directory) once, completely or not at all, and queries its server."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadstone.systems.base import process
from loadstone.systems.base.files import program
from loadstone.systems.base.system import SystemsError

# The superuser has a random password, because it may run programs as the server's user.
SUPERUSER = "postgres"
# An empty database next to the store's, for benchmarks that are commands: `pgbench … bench`.
COMMANDS_DATABASE = "bench"
ANSWER_S = 60.0
SHARED_MEMORY = Path("/proc/sysvipc/shm")


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs, and the environment they need."""

    directory: Path
    variables: Mapping[str, str]

    def program_path(self, name: str) -> str:
        """The path of a program."""
        return str(self.directory / name)

    def run_program(
        self, name: str, *arguments: str, user: str | None = None, stdin: str = "", **variables: str
    ) -> str:
        """The output of a program. Raises SystemsError."""
        return program.run_program(
            [self.program_path(name), *arguments],
            name,
            "see `loadstone systems logs postgres`",
            # The user may be unable to enter the current directory.
            Path("/"),
            {**self.variables, **variables},
            user=user,
            stdin=stdin,
            timeout_s=ANSWER_S,
        )


def ensure_cluster(programs: Programs, directory: Path, user: str | None, settings: Mapping[str, str]) -> Path:
    """The cluster in a directory; if it is missing, creates it with a role and its databases. Raises SystemsError."""
    cluster, draft = directory / "cluster", directory / "draft"
    if cluster.is_dir():
        forget_ended(cluster)
        return cluster
    if draft.exists():
        shutil.rmtree(draft)
    password = directory / "password"
    password.write_text(secrets.token_hex(16))
    try:
        if user:
            shutil.chown(password, user)
        programs.run_program(
            "initdb",
            f"--pgdata={draft}",
            f"--username={SUPERUSER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            # With this locale, keys are sorted by their bytes, as in all stores.
            "--locale=C",
            user=user,
        )
    finally:
        password.unlink()
    databases = dict.fromkeys([settings["database"].lower(), COMMANDS_DATABASE])
    statements = [
        f"CREATE ROLE {settings['user']} LOGIN CREATEDB PASSWORD {sql_literal(settings['password'])}",
        *(f"CREATE DATABASE {name} OWNER {settings['user']}" for name in databases),
    ]
    # In single-user mode, there is no server: the program reads one statement per line from its input.
    programs.run_program(
        "postgres", "--single", "-D", str(draft), "-c", "exit_on_error=on", "-c", "dynamic_shared_memory_type=mmap",
        "postgres", user=user, stdin="".join(f"{statement}\n" for statement in statements),
    )  # fmt: skip
    draft.rename(cluster)
    return cluster


def copy_certificates(files: Path, directory: Path, user: str | None) -> Path:
    """Copies a server's certificate and key to its directory, where its user can read them."""
    copies = directory / "tls"
    copies.mkdir(exist_ok=True)
    for name in ("ca.pem", "server.pem", "server.key"):
        shutil.copy(files / name, copies / name)
        if user:
            shutil.chown(copies / name, user)
    return copies


def forget_ended(cluster: Path) -> None:
    """Removes the lock files of an exited server whose pid still exists because it has not been reaped.

    The next server would consider that server alive. (Only pids that no longer exist are detected by PostgreSQL.)
    """
    for lock in (cluster / "postmaster.pid", *cluster.glob(".s.PGSQL.*.lock")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(lock.read_text().splitlines()[0])
            if Path(f"/proc/{pid}").exists() and process.read_process(pid) is None:
                lock.unlink()


def ask_server(programs: Programs, host: str, settings: Mapping[str, str], query: str) -> str:
    """The server's answer to a query, which is made in the clients' role. Raises SystemsError."""
    arguments = ["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={query}"]
    where = {"PGHOST": host, "PGPORT": settings["port"], "PGDATABASE": settings["database"]}
    who = {"PGUSER": settings["user"], "PGPASSWORD": settings["password"]}
    return programs.run_program("psql", *arguments, **where, **who, PGCONNECT_TIMEOUT="5").strip()


def sql_literal(text: str) -> str:
    """A text as an SQL literal. Raises SystemsError if it contains unprintable characters."""
    if not text.isprintable():
        raise SystemsError("the password has unprintable characters", "choose another password with --set password=")
    return "'" + text.replace("'", "''") + "'"


def remove_shared_memory(directory: Path) -> None:
    """Removes the shared memory that a killed server left behind, which would prevent the next server from starting."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = (directory / "cluster/postmaster.pid").read_text().splitlines()
        pid, identity = lines[0], lines[6].split()[1]
        header, *rows = (line.split() for line in SHARED_MEMORY.read_text().splitlines())
        for row in rows:
            segment = dict(zip(header, row, strict=True))
            # The killed server created the segment, and no process is attached to it.
            if (segment["shmid"], segment["cpid"], segment["nattch"]) == (identity, pid, "0"):
                subprocess.run(["ipcrm", "-m", identity], check=False)
