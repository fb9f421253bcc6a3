"""Archives of result folders open like the folder, contain no name after redaction, and cannot escape their target."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import loadstone
from lab_support import ROOT
from lab_support import loadstone as command
from loadstone.engine.histogram import Histogram
from loadstone.results import archive
from loadstone.results.folder import Folder
from loadstone.results.hlog import write_histograms
from loadstone.results.result_set import Question
from loadstone.results.value import Value
from results_support import trial

FIXTURE = ROOT / "tests/fixtures/results/v2"
NAMES = ("bench-7", "example.org", "db-1", "10.1.2.3", "fd00::7", "/srv/data", "anna", "My Files", "nn1", "/benchmarks")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with names of hosts and paths in every place where results may contain them."""
    created = Folder.create_folder(
        tmp_path / "results/shared/2026-01-01T00-00-00Z",
        "shared",
        Question(text="Is db-1.example.org slow?", by="disk"),
        interleaved=True,
        experiment="systems:\n  redis:\n    attach: {hosts: [db-1.example.org, 10.1.2.3]}\ndata: /srv/data\n",
        environment={
            "hosts": [{"name": "bench-7", "data": "/home/anna/My Files/x", "kernel": "Linux 6.1"}],
            "command": ["loadstone", "run", "~anna/x.yaml", "--set=dir=/srv/data/a"],
        },
        workloads={"/home/anna/My Files/workloada": "5" * 64},
    )
    for number, (disk, rate) in enumerate((("/srv/data/a", 10.0), ("/srv/data/b", 20.0)) * 2):
        result = trial(
            f"{number}-bench-7-r1",
            {"disk": disk},
            rate + number,
            number // 2 + 1,
            facts={"store": "hdfs://nn1.example.org:8020/benchmarks/io", "version": "10.10.1.0", "profile": "release"},
            order=number,
        )
        with created.open_attempt(result.trial) as files:
            histogram = Histogram()
            histogram.counts.update({number: 5})
            write_histograms(files / "run.hlog", {"READ": histogram})
            (files / "hooks.log").write_text("connected to BENCH-7 (fd00::7, 127.0.0.1)\nopened /srv/data/a\n")
            (files / "core.bin").write_bytes(b"\0bench-7")
            spec = {"store": {"hosts": "db-1.example.org:6379", "p99": "1/2 of /proc/stat"}}
            (files / "run.spec.json").write_text(json.dumps(spec))
        created.append_trial(result)
    return created


def content(archive: Path) -> str:
    """All names and all text in an archive."""
    with zipfile.ZipFile(archive) as opened:
        return "\n".join(name + "\n" + opened.read(name).decode() for name in opened.namelist())


def test_archive_opens_like_its_folder(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "export", folder.path, "-o", "shared.zip")
    archived, original = loadstone.open(tmp_path / "shared.zip"), loadstone.open(folder.path)
    for name in ("trials", "figures", "histograms", "facts", "hosts"):
        assert archived.table(name).equals(original.table(name)), name
    assert archived.latencies("read").n == 20
    assert archived.judgement.answer == original.judgement.answer
    for arguments in (["show"], ["check"], ["show", "--json"]):
        name, *options = arguments
        outputs = [command(tmp_path, name, path, *options).stdout for path in (folder.path, "shared.zip")]
        assert outputs[0] == outputs[1]
    command(tmp_path, "compare", "shared.zip", folder.path)
    command(tmp_path, "report", "shared.zip", "-o", "report")
    assert (tmp_path / "report/report.html").exists()


def test_unzipped_archive_is_a_result_folder(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "export", folder.path, "-o", "shared.zip")
    zipfile.ZipFile(tmp_path / "shared.zip").extractall(tmp_path / "elsewhere")
    assert "shared" in command(tmp_path, "list", "--results", "elsewhere").stdout
    first = (tmp_path / "shared.zip").read_bytes()
    command(tmp_path, "export", folder.path, "-o", "shared.zip")
    assert (tmp_path / "shared.zip").read_bytes() == first, "equal folders give equal archives"


def test_redacted_archive_has_no_name(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "report", folder.path)
    command(tmp_path, "export", folder.path, "-o", "plain.zip")
    with zipfile.ZipFile(tmp_path / "plain.zip") as plain:
        everything = b"".join(plain.read(name) for name in plain.namelist())
    assert all(name.encode() in everything for name in NAMES), "the test's names are in the folder"
    done = command(tmp_path, "export", folder.path, "-o", "redacted.zip", "--redact")
    assert done.stderr.count("core.bin: a binary file cannot be redacted") == 4
    text = content(tmp_path / "redacted.zip").lower()
    assert [name for name in NAMES if name.lower() in text] == []
    assert "report.html" not in text
    for public in ("127.0.0.1", "/proc/stat", "linux 6.1", "10.10.1.0", "release"):
        assert public in text, public


def redact(folder: Folder, home: Path) -> tuple[str, loadstone.Run]:
    """The text in the redacted archive of a folder, and the archive's results."""
    archive.write_archive(folder, home / "redacted.zip", redact=True)
    return content(home / "redacted.zip"), loadstone.open(home / "redacted.zip")


def test_figures_of_hosts_are_redacted(tmp_path: Path) -> None:
    hosts = ("worker-7", "nodealpha", "east.corp")
    environment = {"hosts": [{"name": name} for name in hosts]}
    folder = Folder.create_folder(tmp_path / "f/1", "f", Question(), interleaved=True, environment=environment)
    result = trial("a", {"system": "a"}, 10.0)
    names = [f"host.{name}.{figure}" for name in hosts for figure in ("throughput", "read.p99.9")]
    figures = {name: Value(name, 1.0, "op/s", 5) for name in names}
    folder.append_trial(replace(result, values={**result.values, **figures}))
    text, run = redact(folder, tmp_path)
    assert [name for name in hosts if name in text] == []
    assert len({row["metric"] for row in run.figures.to_pylist()}) == len(names) + 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a:\n  attach:\n    hosts:\n      - alpha.corp\n      - 'beta'\n", ("alpha.corp", "beta")),
        ("{namenode: nn.corp, servers: [srv.corp, two.corp]}", ("nn.corp", "srv.corp", "two.corp")),
        ("server: one.corp\nseeds: s1.corp\nbroker: br.corp:9092\n", ("one.corp", "s1.corp", "br.corp")),
        ("zookeeper=zk.corp jdbc=db.corp:5432", ("zk.corp", "db.corp")),
        ("data: /srv/my data/x\n", ("my data",)),
        ("opened '/srv/my secret/y' and C:\\Users\\anna\\x\n", ("my secret", "secret/y", "anna")),
        ("flags: cc -I/srv/secret/include -L/opt/hidden/lib\n", ("secret", "hidden")),
        ("servers: 3, seeds: 5, version 7.2.4", ()),
    ],
)
def test_names_in_settings_are_redacted(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    folder = Folder.create_folder(tmp_path / "f/1", "f", Question(), interleaved=True, experiment=text)
    redacted, _ = redact(folder, tmp_path)
    assert [name for name in names if name in redacted] == []
    assert names or text in redacted


def test_hosts_may_share_words_of_the_format(tmp_path: Path) -> None:
    environment = {"hosts": [{"name": name} for name in ("redis", "run", "trials", "values", "gamma")]}
    folder = Folder.create_folder(tmp_path / "f/1", "f", Question(), interleaved=True, environment=environment)
    with folder.open_attempt("a") as files:
        histogram = Histogram()
        histogram.counts.update({1: 5})
        write_histograms(files / "run.hlog", {"READ": histogram})
        (files / "observed.jsonl").write_text('{"hosts":{"gamma":{"cpu":1}}}\n')
    folder.append_trial(trial("a", {"system": "redis"}, 10.0, facts={"store": "redis"}))
    text, run = redact(folder, tmp_path)
    assert "gamma" not in text
    assert run.latencies("read").n == 5
    assert run.dimensions == {"system": ["redis"]}


def test_tags_of_histograms_are_redacted(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "f/1", "f", Question(), interleaved=True, experiment="hosts: east.corp\n")
    with folder.open_attempt("a") as files:
        (files / "run.hlog").write_text("Tag=READ@east.corp:10.9.8.7,0.1,1.0,2.5,HISTFAAAAeast.corp\n")
    text, _ = redact(folder, tmp_path)
    assert "10.9.8.7" not in text
    assert text.count("east.corp") == 1


def test_redaction_leaves_figures_and_judgement(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "export", folder.path, "-o", "redacted.zip", "--redact")
    redacted, original = loadstone.open(tmp_path / "redacted.zip"), loadstone.open(folder.path)
    assert redacted.figures["value"].equals(original.figures["value"])
    assert redacted.histograms["histogram"].equals(original.histograms["histogram"])
    assert len(redacted.dimensions["disk"]) == 2, "two paths remain distinct"
    columns = ["ratio", "claim", "p", "n"]
    expected = original.judgement.comparisons.select(columns)
    assert redacted.judgement.comparisons.select(columns).equals(expected)


def test_real_results_survive_redaction(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "results/v2/now")
    command(tmp_path, "export", "v2", "-o", "v2.zip", "--redact")
    outputs = [command(tmp_path, "show", name, "--json").stdout for name in ("v2", "v2.zip")]
    assert outputs[0] == outputs[1]


def test_everything_is_exported_to_a_directory(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "export", folder.path, "-o", "out")
    run = loadstone.open(folder.path)
    for name in ("figures", "trials", "intervals", "facts", "hosts", "samples"):
        assert pq.read_table(tmp_path / f"out/{name}.parquet").equals(run.table(name)), name
    logs = sorted((tmp_path / "out/histograms").iterdir())
    assert [log.name for log in logs] == [f"{number}-bench-7-r1.run.hlog" for number in range(4)]
    assert loadstone.load(logs[0], facts={"clients": 1}).figures


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("../../climbed/folder.json", "has a member outside its directory"),
        ("/climbed/folder.json", "has a member outside its directory"),
        ("a\\..\\..\\folder.json", "has 0 result folders"),
        ("notes.txt", "has 0 result folders instead of one"),
    ],
)
def test_foreign_archives_get_one_line(tmp_path: Path, member: str, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr(member, "{}")
    done = command(tmp_path, "show", "foreign.zip", code=1)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 2, "a message and its hint"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "foreign.zip"]


def test_damaged_archive_gets_one_line(folder: Folder, tmp_path: Path) -> None:
    command(tmp_path, "export", folder.path, "-o", "shared.zip")
    data = bytearray((tmp_path / "shared.zip").read_bytes())
    data[200:400] = bytes(200)
    (tmp_path / "shared.zip").write_bytes(data)
    done = command(tmp_path, "show", "shared.zip", code=1)
    assert ("cannot read shared.zip" in done.stderr, len(done.stderr.splitlines())) == (True, 2)


def test_redaction_needs_an_archive(tmp_path: Path) -> None:
    done = command(tmp_path, "export", FIXTURE, "--redact", code=2)
    assert "--redact needs a .zip file" in done.stderr
    done = command(tmp_path, "export", FIXTURE, "-o", "x.zip", "--filter", "system:lmdb", code=2)
    assert "--filter cannot be combined" in done.stderr
