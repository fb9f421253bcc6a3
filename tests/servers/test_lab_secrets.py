"""No file of a run contains a password."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from loadstone.engine import program, secrets
from systems_support import free_port, up

PASSWORD = "correct-horse"
SERVED = f"""
systems: {{redis: {{store: redis, start: {{system: redis, settings: {{port: {free_port()}, password: {PASSWORD}}}}}}}}}
workload: {{file: %s/workloads/workloada, properties: {{recordcount: 50, fieldcount: 1}}}}
measure: {{warmup: 0, duration: 200ms, settle: false}}
repeats: 2
"""


def test_no_file_of_a_run_has_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    result = loadstone(
        tmp_path, "run", experiment(tmp_path, SERVED), "--set", f"systems.redis.properties.redis.password={PASSWORD}"
    )
    folder = single_folder(tmp_path)
    assert [trial.end for trial in trials(folder)] == ["done"] * 2
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert {"run.spec.json", "experiment.yaml", "folder.json", "report.html"} <= {path.name for path in files}
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in result.stdout + result.stderr


def test_a_password_from_the_environment_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    monkeypatch.setenv("RECORDS", "40")
    text = SERVED.replace(PASSWORD, '"${DB_PASSWORD}"').replace("recordcount: 50", 'recordcount: "${RECORDS}"')
    text += 'hooks: {before: ["test ${RECORDS} = 40"]}\n'
    file = experiment(tmp_path, text)
    loadstone(tmp_path, "run", file, "--set", "systems.redis.properties.redis.password='${DB_PASSWORD}'")
    folder = single_folder(tmp_path)
    assert [(trial.end, trial.facts["records"]) for trial in trials(folder)] == [("done", 40)] * 2
    resolved = (folder.path / "experiment.yaml").read_text()
    assert resolved.count("${DB_PASSWORD}") == 2
    assert "${RECORDS}" in resolved
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
    monkeypatch.delenv("DB_PASSWORD")
    refused = loadstone(tmp_path, "run", file, code=2)
    assert "uses ${DB_PASSWORD}, which is not set" in refused.stderr
    assert "hint: set it before the run: export DB_PASSWORD=…" in refused.stderr


@pytest.mark.parametrize("password", ["plain", " leading", "back\\slash", "two\nlines", "a=b:c#d!", "ünïcode", "tail "])
def test_password_reaches_the_engine_outside_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    from loadstone.experiment.file import load_experiment
    from loadstone.experiment.plan.plan import plan_experiment
    from loadstone.workloads import ycsb

    text = SERVED.replace(PASSWORD, "other") + "vary: {system: [redis]}"
    variant = plan_experiment(load_experiment(experiment(tmp_path, text)).experiment).variants[0]
    variant = replace(variant, store_properties={"redis.password": password})
    arguments: list[list[str]] = []
    real = subprocess.run

    def watch_command(command: list[str], **more: Any) -> Any:
        arguments.append(command)
        return real(command, **more)

    monkeypatch.setattr(subprocess, "run", watch_command)
    assert ycsb.translate_variant(variant, "run")["store"]["properties"]["redis.password"] == password
    assert not [argument for command in arguments for argument in command if password in argument and len(password) > 4]


def test_embedded_password_is_in_no_file_or_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    monkeypatch.setenv("TABLE_NAME", "visible")
    monkeypatch.setenv("PATH", f"{shim(tmp_path)}:{os.environ['PATH']}")
    monkeypatch.setenv("LOADSTONE_ENGINE", str(shim(tmp_path) / "loadstone-engine"))
    # A name that does not suggest a secret, with a value that the engine's facts repeat.
    text = SERVED.replace(f"settings: {{password: {PASSWORD}}}", "settings: {}").replace(
        "fieldcount: 1", 'fieldcount: 1, table: "${TABLE_NAME}-${DB_PASSWORD}"'
    )
    loadstone(tmp_path, "run", experiment(tmp_path, text))
    folder = single_folder(tmp_path)
    assert [trial.end for trial in trials(folder)] == ["done"] * 2
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
    assert "${TABLE_NAME}-${DB_PASSWORD}" in (folder.path / "experiment.yaml").read_text()
    assert "visible-***" in next(folder.path.rglob("run.spec.json")).read_text()
    arguments = (tmp_path / "arguments").read_text()
    assert "ycsb" in arguments
    assert PASSWORD not in arguments


def test_a_password_in_a_url_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{shim(tmp_path)}:{os.environ['PATH']}")
    monkeypatch.setenv("LOADSTONE_ENGINE", str(shim(tmp_path) / "loadstone-engine"))
    with up("postgres", password=PASSWORD) as postgres:
        postgres.systems("fresh", "postgres", "usertable")
        url = f"{postgres.properties['db.url']}?user=ycsb&password={PASSWORD}"
        # A second repeat would load the same records again.
        text = SERVED[SERVED.index("workload:") :].replace("repeats: 2", "repeats: 1")
        text = f'systems: {{sql: {{store: postgres, properties: {{db.url: "{url}"}}}}}}\n{text}'
        result = loadstone(tmp_path, "run", experiment(tmp_path, text))
        front_end = [str(program.find_engine()), "ycsb", "load", "postgres", "-P", "workloads/workloada"]
        printed = subprocess.run([*front_end, "-p", f"db.url={url}"], capture_output=True, text=True, check=False)
    folder = single_folder(tmp_path)
    assert [trial.end for trial in trials(folder)] == ["done"]
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
    assert "user=ycsb&password=***" in next(folder.path.rglob("run.spec.json")).read_text()
    for output in (result.stdout, result.stderr, printed.stdout, printed.stderr):
        assert PASSWORD not in output
    assert "user=ycsb&password=…" in printed.stderr
    assert PASSWORD not in (tmp_path / "arguments").read_text().partition("ycsb load postgres -P workloads")[0]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (
            "jdbc:postgresql://h/d?password=p&user=u&sslPassword=q",
            "jdbc:postgresql://h/d?password=***&user=u&sslPassword=***",
        ),
        ("redis://u:p@h:1/0", "redis://u:***@h:1/0"),
        ("jdbc:postgresql://h/d?password=${DB}", "jdbc:postgresql://h/d?password=${DB}"),
        ("http://h:80/a@b", "http://h:80/a@b"),
    ],
)
def test_passwords_in_urls_are_masked(text: str, hidden: str) -> None:
    assert secrets.hide_secrets(text) == hidden
    assert secrets.has_secret(text) is (text != hidden)


def shim(home: Path) -> Path:
    """A directory with an engine that records its arguments."""
    directory = home / "shim"
    if not directory.exists():
        directory.mkdir()
        real = program.find_engine()
        path = directory / "loadstone-engine"
        path.write_text(f'#!/bin/sh\necho "$@" >> {home}/arguments\nexec {real} "$@"\n')
        path.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("variable", "secret"),
    [
        *((name, True) for name in ("DB_PASSWORD", "PGPASS", "API_TOKEN", "REDIS_PW", "AWS_SECRET_ACCESS_KEY")),
        *((name, False) for name in ("RECORDS", "KEYSPACE", "TABLE")),
    ],
)
def test_a_variable_is_secret_by_its_name(variable: str, secret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_VALUES", set())
    secrets.keep_secret(variable, 'se"cret')
    assert secrets.has_secret('a se"cret') is secret
    assert secrets.hide_secrets('{"a": "se\\"cret"}') == ('{"a": "***"}' if secret else '{"a": "se\\"cret"}')


def test_short_secret_is_masked_only_as_whole_string(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secrets, "_VALUES", set())
    secrets.keep_secret("PASSWORD", "1")
    assert (secrets.hide_secrets("1"), secrets.hide_secrets("127.0.0.1")) == ("***", "127.0.0.1")


def test_a_variable_where_none_is_replaced_is_refused(tmp_path: Path) -> None:
    text = SERVED + 'vary: {size: ["${SIZE}", "2"]}\nhooks: {before: ["echo {size}"]}\n'
    refused = loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=2)
    assert "vary.size uses ${SIZE}, but environment variables are not replaced there (" in refused.stderr
    assert "small.yaml:" in refused.stderr
    assert "hint: use ${SIZE} in a property or setting, or set the values: --set vary.size=[…]" in refused.stderr
