"""Encrypted connections to real servers: Redis and PostgreSQL (Cassandra: test_cassandra_stress.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import CommandResult, Engine
from lab_support import experiment, loadstone, single_folder, trials
from systems_support import Up, up

PREFIX = {"redis": "redis.", "postgres": "db."}
ENCRYPTED = "encryption TLS 1.3, TLS_AES_256_GCM_SHA384, verify=full"


@dataclass(frozen=True)
class Server:
    """A server with encrypted connections."""

    store: str
    up: Up

    @property
    def properties(self) -> dict[str, str]:
        """The store's properties."""
        prefix = PREFIX[self.store]
        return {name: text for name, text in self.up.properties.items() if name.startswith(prefix)}

    def load(self, engine: Engine, properties: Mapping[str, str]) -> CommandResult:
        """Loads a few records."""
        arguments = [word for name, text in properties.items() for word in ("-p", f"{name}={text}")]
        return engine.run(f"load {self.store} -P workloads/workloada recordcount=100", *arguments)


@pytest.fixture(scope="module", params=PREFIX)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with up(request.param, tls="yes") as system:
        if request.param == "postgres":
            system.systems("fresh", "postgres", "usertable")
        yield Server(request.param, system)


def test_operations_are_encrypted(server: Server, engine: Engine) -> None:
    loaded = server.load(engine, server.properties)
    assert ENCRYPTED in loaded.err
    assert loaded.returns("INSERT") == {"OK": 100}


def test_foreign_authorities_are_refused(server: Server, engine: Engine, program: Path, tmp_path: Path) -> None:
    subprocess.run([program, "certificates", tmp_path / "other", "localhost"], check=True, capture_output=True)
    own = f"{server.up.root}/{server.store}/data/tls/ca.pem"
    assert any(own in text for text in server.properties.values())
    other = str(tmp_path / "other/ca.pem")
    refused = server.load(engine, {name: text.replace(own, other) for name, text in server.properties.items()})
    assert refused.code == 1
    (message,) = refused.messages("error: ")
    assert "certificate" in message
    assert refused.messages("hint: ")[0].startswith("set ")


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_keys_are_in_no_result(server: Server, tmp_path: Path) -> None:
    properties = ", ".join(f'{name}: "{text}"' for name, text in server.properties.items())
    text = f"""
question: Is the key of the server kept secret?
systems: {{one: {{store: {server.store}, properties: {{{properties}}}}}}}
workload: {{file: %s/workloads/workloada, properties: {{recordcount: 100}}}}
clients: 1
measure: {{warmup: 0, duration: 200ms}}
repeats: 2
"""
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    folder = single_folder(tmp_path)
    assert {str(trial.facts["encryption"])[:7] for trial in trials(folder)} == {"TLS 1.3"}
    files = server.up.root / server.store / "data/tls"
    secrets = [line for key in files.glob("*.key") for line in key.read_bytes().splitlines()[1:-1]]
    assert secrets
    for path in folder.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret in content for secret in secrets), path


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_roles_are_proven_by_certificates(server: Server, engine: Engine) -> None:
    rules = server.up.running.place.data / "postgres/cluster/pg_hba.conf"
    content = rules.read_text()
    rules.write_text(f"hostssl all ycsb 127.0.0.1/32 cert\n{content}")
    server.up.systems("restart", "postgres")
    try:
        refused = server.load(engine, server.properties)
        assert refused.code == 1
        assert "client certificate" in refused.messages("error: ")[0]
        assert "certificate" in refused.messages("hint: ")[0]
        files = server.up.root / "postgres/data/tls"
        certificate = f"&sslcert={files}/client.pem&sslkey={files}/client.key"
        proven = server.properties | {"db.url": server.properties["db.url"] + certificate}
        del proven["db.passwd"]
        server.up.systems("fresh", "postgres", "usertable")
        assert server.load(engine, proven).returns("INSERT") == {"OK": 100}
    finally:
        rules.write_text(content)
        server.up.systems("restart", "postgres")
