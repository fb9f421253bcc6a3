"""Creates the clusters (data directories) of a primary and its standbys once, completely or not at all, and queries
servers."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
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
# How a quote is written within quotes: in a connection string, and in a configuration file.
ESCAPED, DOUBLED = "\\'", "''"
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


def ensure_cluster(
    programs: Programs,
    directory: Path,
    user: str | None,
    settings: Mapping[str, str],
    standbys: Sequence[str] = (),
    parameters: Sequence[str] = (),
    network: str = "",
) -> Path:
    """The cluster in a directory; if it is missing, creates it with a role, databases and a slot for each standby.

    Clients in `network`, such as `10.77.3.0/24`, are accepted in addition to clients on this host. Raises SystemsError.
    """
    cluster, draft = directory / "cluster", new_draft(directory)
    if draft is None:
        return cluster
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
    if standbys:
        # The standbys connect in the clients' role, which may then also read the state of the replication.
        statements += [f"ALTER ROLE {settings['user']} REPLICATION", f"GRANT pg_monitor TO {settings['user']}"]
        # Each slot retains the log that its standby has not received, however long the standby is down.
        statements += [
            f"SELECT pg_create_physical_replication_slot('{slot_name(standby)}', true)" for standby in standbys
        ]
    # In single-user mode, there is no server: the program reads one statement per line from its input.
    programs.run_program(
        "postgres", "--single", "-D", str(draft), "-c", "exit_on_error=on", "-c", "dynamic_shared_memory_type=mmap",
        # A standby refuses to start if its limits, such as max_connections, are below the limits in its copy.
        *(parameters if standbys else ()),
        "postgres", user=user, stdin="".join(f"{statement}\n" for statement in statements),
    )  # fmt: skip
    if network:
        with (draft / "pg_hba.conf").open("a") as rules:
            rules.write("".join(f"host {what} all {network} scram-sha-256\n" for what in ("all", "replication")))
    draft.rename(cluster)
    return cluster


def ensure_standby(
    primary: Path, directory: Path, user: str | None, settings: Mapping[str, str], name: str, host: str
) -> Path:
    """The cluster of a standby; if it is missing, copies the primary's, which has never been started. Raises
    SystemsError."""
    cluster, draft = directory / "cluster", new_draft(directory)
    if draft is None:
        return cluster
    command = ["cp", "--archive", str(primary), str(draft)]
    program.run_program(command, "cp", "free some space", Path("/"), user=user, timeout_s=ANSWER_S)
    for slot in (draft / "pg_replslot").iterdir():
        shutil.rmtree(slot)
    signal = draft / "standby.signal"
    signal.touch()
    if user:
        shutil.chown(signal, user)
    server = {"host": host, "port": settings["port"], "application_name": name}
    who = {"user": settings["user"], "password": settings["password"]}
    connection = " ".join(f"{key}={quote_text(value, ESCAPED)}" for key, value in {**server, **who}.items())
    parameters = {"primary_conninfo": connection, "primary_slot_name": slot_name(name)}
    # Only the server's user can read this file, which contains the password.
    with (draft / "postgresql.auto.conf").open("a") as file:
        file.write("".join(f"{key} = {quote_text(value, DOUBLED)}\n" for key, value in parameters.items()))
    draft.rename(cluster)
    return cluster


def new_draft(directory: Path) -> Path | None:
    """The path for a cluster that is being created, without the remains of an earlier attempt; None if the directory
    has a cluster."""
    cluster, draft = directory / "cluster", directory / "draft"
    if cluster.is_dir():
        forget_ended(cluster)
        return None
    if draft.exists():
        shutil.rmtree(draft)
    return draft


def slot_name(standby: str) -> str:
    """The name of a standby's replication slot, which has no hyphens."""
    return standby.replace("-", "_")


def quote_text(text: str, quote: str) -> str:
    """Puts text in single quotes; `quote` replaces each single quote in the text."""
    return "'" + text.replace("\\", "\\\\").replace("'", quote) + "'"


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

    The next server would consider that server alive. (PostgreSQL detects only pids that no longer exist.)
    """
    for lock in (cluster / "postmaster.pid", *cluster.glob(".s.PGSQL.*.lock")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(lock.read_text().splitlines()[0])
            if Path(f"/proc/{pid}").exists() and process.read_process(pid) is None:
                lock.unlink()


def ask_server(programs: Programs, host: str, settings: Mapping[str, str], query: str) -> str:
    """The server's answer to a query in the clients' role. Raises SystemsError."""
    arguments = ["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={query}"]
    where = {"PGHOST": host, "PGPORT": settings["port"], "PGDATABASE": settings["database"]}
    who = {"PGUSER": settings["user"], "PGPASSWORD": settings["password"]}
    return programs.run_program("psql", *arguments, **where, **who, PGCONNECT_TIMEOUT="5").strip()


def sql_literal(text: str) -> str:
    """Converts text to an SQL literal. Raises SystemsError if the text contains unprintable characters."""
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
