"""The guide on importing agrees with the importers."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from imports_support import FIXTURES, YCSB, read_single, refusal, write_file
from loadstone.commands import compare, show
from loadstone.commands.import_results import main
from loadstone.engine.histogram import encode_histogram
from loadstone.errors import LoadstoneError
from loadstone.importers import unit
from loadstone.importers.explain import explain_file
from loadstone.importers.json_paths import parse_figure
from loadstone.importers.read import FORMATS, read_file
from loadstone.importers.run import build_histogram
from loadstone.results.folder import Folder

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "importing-results.md").read_text()


def read_block(start: str) -> str:
    """The block of the guide with this first line, without its indent."""
    at = GUIDE.index(f"    {start}")
    return re.sub(r"(?m)^    ", "", GUIDE[at:].partition("\n\n")[0]) + "\n"


def test_every_format_has_its_row() -> None:
    assert re.findall(r"(?m)^\| `([a-z-]+)` \| .* \| .* \| .* \|$", GUIDE)[: len(FORMATS)] == list(FORMATS)


def test_guide_units_are_known_and_mb_is_correct() -> None:
    table = GUIDE[GUIDE.index("| units |") : GUIDE.index("Sizes are case-sensitive")]
    for name in re.findall(r"[A-Za-zµ%]+(?:/[a-z]+)?(?=[,;|]| or| \|)", table.partition("| time |")[2]):
        if name not in ("rates", "sizes", "bandwidth", "shares", "s"):
            assert unit.base_unit(name)
    for text in ("MB/s is 1,000,000", "MiB/s is 1,048,576", "Mb/s is 125,000"):
        assert text in GUIDE
        name, _, number = text.partition(" is ")
        assert unit.base_unit(name) == (float(number.replace(",", "")), "B/s")
    assert all(unit.base_unit(word) for word in unit.KNOWN.split(", "))


def test_its_table_and_its_facts_are_read(tmp_path: Path) -> None:
    result = read_single(write_file(tmp_path, read_block("variant,repeat"), "table.csv")).result
    assert (result.value("throughput"), result.value("read.mean"), result.clients) == (68848.71, 731_000, 20)
    rows = "metric,unit,value,variant\nread.bandwidth,MB/s,1803.99,no-px\nread.bandwidth,MB/s,266.38,px\n"
    path = write_file(tmp_path, rows, "hdfs.csv")
    write_file(tmp_path, read_block("tool: testdfsio"), "hdfs.facts.yaml")
    results = [run.result for run in read_file(path, {})]
    assert [result.numeric_fact("device_read_bps") for result in results] == pytest.approx([1690.2e6, 1051.2e6])
    assert [result.numeric_fact("network_bps") for result in results] == pytest.approx([125e6, 1250e6])


def test_every_note_it_names_is_one(tmp_path: Path) -> None:
    source = "".join(path.read_text() for path in Path(unit.__file__).parent.glob("*.py"))
    for name in (
        "percentiles-left-out",
        "counts-failures",
        "service-time",
        "coarse",
        "derived",
        "averages",
        "unknown",
    ):
        assert f"`{name}`" in GUIDE
        assert f'"{name}"' in source


def run_import(line: str, folder: Path) -> str:
    """Runs a command of the guide in a folder, and returns its standard output."""
    output = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(output):
        assert main(shlex.split(line)[2:]) == 0
    return output.getvalue()


def commands() -> list[str]:
    return re.findall(r"(?m)^    (loadstone import .*)$", GUIDE)


@pytest.mark.parametrize("line", commands(), ids=lambda line: line[17:50])
def test_import_commands_of_the_guide_work(line: str, tmp_path: Path) -> None:
    run = (YCSB / "run_a.out").read_text()
    for number in (1, 2, 3):
        write_file(tmp_path, run, f"run{number}.log")
    for name in ("accelerated.log", "regular.log"):
        write_file(tmp_path, (FIXTURES / name).read_text(), name)
    write_file(tmp_path, run, "bench.log")
    write_file(tmp_path, (FIXTURES / "hdfs-read.csv").read_text(), "hdfs.csv")
    write_file(tmp_path, '{"summary": {"tps": 812.5}, "latency": {"p99": 4.5}}\n', "bench.json")
    assert run_import(line, tmp_path).startswith(("results/imported/", "bench.log: YCSB text, 1 run"))


def test_processes_of_the_guide_are_merged(tmp_path: Path) -> None:
    (line,) = re.findall(r"`(loadstone import --processes [^`]*)`", GUIDE)
    for number in (1, 2):
        histogram = encode_histogram(build_histogram([(1000 * number, 6000)]))
        head = "#[Histogram log format version 1.3]\n#[Unit: ns]\n#[StartTime: 1000.0 (seconds)]\n"
        write_file(tmp_path, f"{head}Tag=READ,0.0,1.0,2.0,{histogram}\n", f"{number}.hdr")
    folder = run_import(line.replace("*.hdr", "1.hdr 2.hdr"), tmp_path).splitlines()[-1]
    (trial,) = Folder(tmp_path / folder).load_results().trials
    assert (trial.clients, trial.value("operations")) == (500, 12_000)


def test_results_of_the_guide_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("accelerated.log", "regular.log"):
        write_file(tmp_path, (FIXTURES / name).read_text(), name)
    lines = re.findall(r"(?m)^    loadstone ((?:import|show|compare) .*)$", GUIDE.partition("## Formats")[0])
    assert [line.split()[0] for line in lines] == ["import", "show", "compare"]
    with contextlib.chdir(tmp_path):
        for line in lines:
            (folder, *_) = [str(path) for path in Path("results/imported").glob("*")] or [""]
            name, *arguments = shlex.split(line.replace("results/imported/…", folder))
            assert {"import": main, "show": show.main, "compare": compare.main}[name](arguments) == 0
            assert capsys.readouterr().out


def test_paths_of_the_guide_are_read(tmp_path: Path) -> None:
    path = write_file(tmp_path, '{"summary": {"tps": 812.5}, "latency": {"p99": 4.5}}\n' * 3, "bench.json")
    write_file(tmp_path, read_block("json:"), "bench.facts.yaml")
    trials = [imported.result for imported in read_file(path, {})]
    assert [(trial.repeat, trial.value("throughput"), trial.value("all.p99")) for trial in trials] == [
        (number, 812.5, 4_500_000) for number in (1, 2, 3)
    ]


def test_explanation_comes_before_the_folder(tmp_path: Path) -> None:
    write_file(tmp_path, (YCSB / "run_a.out").read_text(), "bench.log")
    lines = run_import("loadstone import --explain bench.log", tmp_path).splitlines()
    assert lines[0] == "bench.log: YCSB text, 1 run"
    assert "    16: [CLEANUP], MaxLatency(us)" not in lines
    assert (tmp_path / lines[-1] / "values.jsonl").exists()


@pytest.mark.parametrize("text", ["throughput", "throughput=tps op/s", "throughput=$.tps frob", "=$.tps op/s"])
def test_wrong_paths_are_refused(text: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        parse_figure(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tps": "many"}', "$.tps is not a number in document 1: many (a.json)"),
        ('{"rate": 1}', "$.tps does not match anything in document 1"),
        ('{"tps": 1', "the JSON is truncated or damaged"),
        ('{"tps": true}', "$.tps is not a number in document 1: True"),
        ('{"tps": 1, "tps": 2}', 'the key "tps" occurs twice'),
        ('{"tps": -1}', "throughput is negative"),
    ],
)
def test_paths_without_a_number_are_refused(text: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(write_file(tmp_path, text, "a.json"), {"json": "throughput=$.tps op/s"})


def test_elements_of_a_list_are_repeats(tmp_path: Path) -> None:
    path = write_file(tmp_path, '{"runs": [{"tps": 1}, {"tps": "2.5"}]}', "a.json")
    trials = [imported.result for imported in read_file(path, {"json": "throughput=$.runs[*]['tps'] kop/s"})]
    assert [(trial.repeat, trial.value("throughput")) for trial in trials] == [(1, 1000), (2, 2500)]


def test_element_without_a_figure_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path, '{"a": [{"t": 1, "l": 2}, {"t": 3}, {"l": 4}]}', "a.json")
    assert "is null or missing in document 1" in refusal(
        path, {"json": "throughput=$.a[*].t op/s\nall.p99=$.a[*].l ms"}
    )
    assert "a metric has two paths" in refusal(path, {"json": "throughput=$.a[*].t op/s\nthroughput=$.a[*].l op/s"})


def test_keys_without_a_path_are_listed(tmp_path: Path) -> None:
    path = write_file(tmp_path, '{"tps": 1, "latency": {"p99": 4}}', "a.json")
    assert "    latency" in explain_file(path, {"json": "throughput=$.tps op/s"})
