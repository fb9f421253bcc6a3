"""Encrypted connections to three real nodes of Cassandra; one node may have a wrong certificate."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cassandra_support import nodetool
from conftest import CommandResult, Engine
from loadstone.systems.cassandra.cql import Row
from loadstone.systems.cassandra.ring import connect_node
from systems_support import Up, up

# Starting three nodes takes about a minute.
pytestmark = pytest.mark.soak
CLIENTS = "SELECT driver_name, ssl_enabled, ssl_protocol, ssl_cipher_suite FROM system_views.clients"
PATIENT_S = 60.0
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
LATE = "20490101000000Z"
# A CA that can also issue expired certificates, unlike the lab's.
CONFIGURATION = """
[ca]
default_ca = own
[own]
database = {home}/index.txt
new_certs_dir = {home}
serial = {home}/serial
certificate = {home}/ca.pem
private_key = {home}/ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
"""


class Cluster:
    """Three nodes, and the CA that signs their certificates."""

    def __init__(self, cassandra: Up, home: Path) -> None:
        self.up = cassandra
        self.home = home
        self.files = cassandra.root / "cassandra/data/tls"
        self.configuration = home / "openssl.cnf"
        self.configuration.write_text(CONFIGURATION.format(home=home))
        (home / "index.txt").touch()
        (home / "serial").write_text("01\n")
        self.ca = self.create_authority("ca")
        self.other = self.create_authority("other")

    def openssl(self, *arguments: str) -> None:
        """Runs openssl."""
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def create_authority(self, name: str) -> Path:
        """Creates a CA's certificate and key."""
        path = self.home / f"{name}.pem"
        key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            str(path.with_suffix(".key")),
        ]
        extensions = ["-config", str(self.configuration), "-extensions", "authority"]
        self.openssl("req", "-x509", *key, "-out", str(path), "-subj", "/CN=CA", "-days", "3650", *extensions)
        return path

    def use_certificate(self, node: int, authority: Path, *hosts: str, end: str = LATE) -> None:
        """Makes a node use a new certificate for these hosts, valid until `end`."""
        request, key, certificate = (self.home / f"server.{suffix}" for suffix in ("csr", "key", "crt"))
        names = ",".join(f"{'DNS' if host[0].isalpha() else 'IP'}:{host}" for host in hosts)
        create = [*NEW_KEY, "-subj", "/CN=server"]
        name = ["-config", str(self.configuration), "-addext", f"subjectAltName={names}"]
        self.openssl("req", "-new", *create, "-keyout", str(key), "-out", str(request), *name)
        signer = ["-cert", str(authority), "-keyfile", str(authority.with_suffix(".key"))]
        dates = ["-startdate", "20190101000000Z", "-enddate", end]
        paths = ["-config", str(self.configuration), "-batch", "-notext", "-in", str(request), "-out", str(certificate)]
        self.openssl("ca", *paths, *signer, *dates)
        (self.files / "node.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
        # All nodes share the file. A node reads it when requested, and otherwise every ten minutes.
        nodetool(self.up.running.place, self.up.running.plan, node, "reloadssl")

    def properties(self, contact: int, authority: Path | None = None) -> Mapping[str, str]:
        """The store's properties with one contact point."""
        return {
            **self.up.properties,
            "hosts": f"127.0.0.{contact}",
            "cassandra.tls.ca": str(authority or self.ca),
        }

    def run(self, engine: Engine, properties: Mapping[str, str], line: str = "load") -> CommandResult:
        """Loads or reads a few records."""
        arguments = [word for name, text in properties.items() for word in ("-p", f"{name}={text}")]
        return engine.run(f"{line} cassandra -P workloads/workloada recordcount=300", *arguments, timeout=180)

    def clients(self, node: int) -> list[Row]:
        """The connections of Loadstone's engine to a node, as the node reports them."""
        with connect_node(self.up.running.plan, node, PATIENT_S) as cql:
            return [row for row in cql.run_query(CLIENTS) if row["driver_name"] == "loadstone"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up("cassandra", nodes=3, tls="yes", heap="512M") as cassandra:
        cassandra.systems("fresh", "cassandra", "usertable")
        cluster = Cluster(cassandra, tmp_path_factory.mktemp("tls"))
        for node in (1, 2, 3):
            cluster.use_certificate(node, cluster.ca, *HOSTS)
        yield cluster


def check_refusal(refused: CommandResult, node: int, reason: str, hint: str) -> None:
    """Checks that one line states the reason and names the node, and that one hint follows."""
    assert refused.code == 1, refused.err
    (message,) = refused.messages("error: ")
    assert f"127.0.0.{node}:" in message
    assert reason in message
    (advice,) = refused.messages("hint: ")
    assert hint in advice


def test_every_nodes_connections_are_encrypted(cluster: Cluster, engine: Engine) -> None:
    loaded = cluster.run(engine, cluster.properties(1))
    assert loaded.returns("INSERT") == {"OK": 300}
    assert "encryption TLS 1.3, TLS_AES_256_GCM_SHA384, verify=full" in loaded.err
    line = "run -threads 8 -target 200 operationcount=2000"
    running = threading.Thread(target=lambda: cluster.run(engine, cluster.properties(1), line))
    running.start()
    try:
        counts: dict[int, int] = {}
        while running.is_alive() and min(counts.get(node, 0) for node in (1, 2, 3)) == 0:
            for node in (1, 2, 3):
                clients = cluster.clients(node)
                assert all(row["ssl_enabled"] and row["ssl_protocol"] == "TLSv1.3" for row in clients), clients
                counts[node] = max(counts.get(node, 0), len(clients))
    finally:
        running.join()
    assert all(counts.values()), counts


@pytest.mark.parametrize("contact", [1, 3])
@pytest.mark.parametrize("fault", ["authority", "name", "expired"])
def test_one_wrong_certificate_is_refused(cluster: Cluster, engine: Engine, fault: str, contact: int) -> None:
    authority, host, end, reason, hint = {
        "authority": (cluster.other, "127.0.0.3", LATE, "is not signed by the CA", "cassandra.tls.ca"),
        "name": (cluster.ca, "db3", LATE, "is for db3, not for 127.0.0.3", "cassandra.tls.name"),
        "expired": (cluster.ca, "127.0.0.3", "20200101000000Z", "expired", "renew the certificate"),
    }[fault]
    cluster.use_certificate(3, authority, host, end=end)
    try:
        check_refusal(cluster.run(engine, cluster.properties(contact)), 3, reason, hint)
    finally:
        cluster.use_certificate(3, cluster.ca, *HOSTS)
    assert cluster.run(engine, cluster.properties(contact)).returns("INSERT") == {"OK": 300}


def test_wrong_authority_is_refused_by_the_client(cluster: Cluster, engine: Engine) -> None:
    refused = cluster.run(engine, cluster.properties(2, cluster.other))
    check_refusal(refused, 2, "is not signed by the CA", "cassandra.tls.ca")


def test_lower_verification_accepts_other_names(cluster: Cluster, engine: Engine) -> None:
    cluster.use_certificate(3, cluster.ca, "db3")
    try:
        loaded = cluster.run(engine, {**cluster.properties(1), "cassandra.tls.verify": "ca"})
        assert loaded.returns("INSERT") == {"OK": 300}
        assert "verify=ca" in loaded.err
    finally:
        cluster.use_certificate(3, cluster.ca, *HOSTS)
