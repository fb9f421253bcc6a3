"""The commands list, show, compare, check, report and import, tested on the figures of hand-written reports."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from judge_support import CHECKS
from lab_support import ROOT, loadstone, single_folder
from loadstone.cli import LAB_COMMANDS
from loadstone.results.folder import find_folders

IMPORTS = ROOT / "tests/fixtures/imports"
RESULTS = ROOT / "tests/fixtures/results"
REGULAR, ACCELERATED = IMPORTS / "regular.log", IMPORTS / "accelerated.log"


def test_two_logs_are_compared(tmp_path: Path) -> None:
    output = loadstone(tmp_path, "compare", REGULAR, ACCELERATED, "--metric", "throughput,insert.p95").stdout
    assert "388 op/s" in output
    assert "1,770 op/s" in output
    assert "(n=1 repeat)" in output
    assert "×" not in output
    assert ("18.8 ms" in output, "3.62 ms" in output) == (True, True)
    assert "n=1: no interval" in output
    # The status lines give the start of each run.
    assert "order of the runs" not in output
    assert not (tmp_path / "results").exists(), "comparing files leaves nothing behind"


def test_numbered_logs_as_sides_are_named_as_runs(tmp_path: Path) -> None:
    names = [f"{side}-{number}.log" for side in "ab" for number in (1, 2)]
    for name in names:
        (tmp_path / name).write_bytes(REGULAR.read_bytes())
    runs = "loadstone compare a-1.log,a-2.log b-1.log,b-2.log"
    assert runs in loadstone(tmp_path, "compare", *names).stderr
    assert runs not in loadstone(tmp_path, "compare", "a-1.log,a-2.log", "b-1.log,b-2.log").stderr
    assert "hint" not in loadstone(tmp_path, "compare", "a-1.log", "a-2.log").stderr


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--duration 5s", "this is a key of the experiment file: use --set measure.duration=5s"),
        ("--repeats=3", "this is a key of the experiment file: use --set repeats=3"),
        ("--scales small", 'did you mean "--scale"?'),
        ("--zzz", "`loadstone run --help` shows the options"),
    ],
)
def test_unknown_option_has_a_hint(tmp_path: Path, option: str, hint: str) -> None:
    done = loadstone(tmp_path, "run", "file.yaml", *option.split(), code=2)
    assert done.stderr.splitlines()[1] == f"hint: {hint}"


def test_json_output_is_in_base_units(tmp_path: Path) -> None:
    output = loadstone(tmp_path, "compare", REGULAR, ACCELERATED, "--json", "--metric", "throughput,insert.p95").stdout
    document = json.loads(output)
    cells = {(cell["variant"]["run"], cell["metric"]): cell["value"] for cell in document["cells"]}
    assert cells == {
        ("regular", "throughput"): 388.45918828344935,
        ("accelerated", "throughput"): 1770.7012685303887,
        ("regular", "insert.p95"): 18_751_000,
        ("accelerated", "insert.p95"): 3_623_000,
    }
    throughput, p95 = document["comparisons"]
    assert round(throughput["ratio"], 2) == 4.56
    assert [(comparison["claim"], comparison["low"], comparison["n"]) for comparison in (throughput, p95)] == [
        ("impossible", None, 1)
    ] * 2


def test_thread_sweep_violations_of_littles_law_are_named(tmp_path: Path) -> None:
    output = loadstone(tmp_path, "check", IMPORTS / "hbase-read-only.csv", "--verbose", code=1).stdout
    assert output.count("littles-law (suspect)") == 22
    assert "(68,849 op/s × 731 µs ÷ 20)" in output
    assert (
        output.splitlines()[-1]
        == f"hbase-read-only.csv: 34 trials, suspect ({CHECKS - 10} of {CHECKS} checks ran in full)"
    )


def test_import_is_an_ordinary_result_folder(tmp_path: Path) -> None:
    arguments = ("import", REGULAR, ACCELERATED, "--name", "wal", "--question", "Do accelerated writes help?")
    path = loadstone(tmp_path, *arguments).stdout.strip()
    folder = single_folder(tmp_path)
    assert str(folder.path.relative_to(tmp_path)) == path
    assert {entry.name for entry in (folder.path / "sources").iterdir()} == {"regular.log", "accelerated.log"}
    assert "wal" in loadstone(tmp_path, "list").stdout
    for name in ("wal", path):
        output = loadstone(tmp_path, "show", name).stdout
        assert output.startswith("Do accelerated writes help?\n")
        assert "1,770 op/s" in output
    # Only one of the logs has status lines, and so a time series.
    assert (folder.path / "trials/accelerated/series.json").exists()
    reports = loadstone(tmp_path, "report", "wal").stdout.split()
    assert [Path(entry).name for entry in reports] == ["report.html", "report.md"]
    assert "1,770 op/s" in (tmp_path / reports[1]).read_text()


def test_repeats_are_files_of_one_variant(tmp_path: Path) -> None:
    copies = [tmp_path / f"run{i}.log" for i in (1, 2, 3)]
    for copy in copies:
        copy.write_bytes(ACCELERATED.read_bytes())
    loadstone(tmp_path, "import", *copies, "--fact", "variant=accelerated")
    assert [trial.repeat for trial in single_folder(tmp_path).load_results().trials] == [1, 2, 3]


def test_result_folders_compare_with_files(tmp_path: Path) -> None:
    loadstone(tmp_path, "import", REGULAR, "--name", "before")
    output = loadstone(tmp_path, "compare", "before", ACCELERATED).stdout
    assert "1,770 op/s" in output
    assert "×" not in output


def test_values_are_exported_as_csv_and_parquet(tmp_path: Path) -> None:
    source = IMPORTS / "hbase-read-only.csv"
    rows = list(csv.DictReader(io.StringIO(loadstone(tmp_path, "export", source).stdout)))
    loadstone(tmp_path, "export", source, "-o", "values.parquet")
    table = pq.read_table(tmp_path / "values.parquet")
    assert table.num_rows == len(rows) == 34 * 2
    assert table.column_names == list(rows[0])
    retained = [row for row in rows if row["metric"] == "throughput" and row["value"] == "68848.71"]
    assert [(row["unit"], row["clients"]) for row in retained] == [("op/s", "20")]
    assert sorted(row["value"] for row in rows) == sorted(str(value) for value in table["value"].to_pylist())
    stderr = loadstone(tmp_path, "export", source, "-o", "values.xlsx", code=1).stderr
    assert stderr.startswith('error: cannot export to ".xlsx" files')


def test_a_filter_may_begin_with_a_dash(tmp_path: Path) -> None:
    source = IMPORTS / "hbase-read-only.csv"

    def clients(*arguments: str) -> set[str]:
        rows = csv.DictReader(io.StringIO(loadstone(tmp_path, "export", source, *arguments).stdout))
        return {row["clients"] for row in rows}

    every = clients()
    assert clients("--filter", "-clients:20") == clients("--filter=-clients:20") == every - {"20"} != every
    for command in (("show", source), ("compare", source, source)):
        arguments = (*command, "--json", "--filter")
        (first, second) = (
            loadstone(tmp_path, *arguments, filter_text).stdout for filter_text in ("-clients:20", "-(clients:20)")
        )
        assert first == second
        assert first != loadstone(tmp_path, *arguments, "clients:20").stdout
    # Options are recognised before `--`, but not after it.
    for rest in (("--filter", "--json"), ("--filter", "-v"), ("--", "--filter", "-clients:20")):
        assert loadstone(tmp_path, "show", source, *rest, code=2).stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (("show", "nothing"), 1, "error: there are no results at nothing\nhint: list the results below"),
        (("show",), 2, "error: the following arguments are required: DIR|FILE|NAME\nhint: `loadstone show --help`"),
        (("compare", REGULAR), 2, "error: a comparison needs at least two results\n"),
        (("show", REGULAR, "--row", "sistem"), 1, 'error: there is no key "sistem" in regular.log\n'),
        (("show", REGULAR, "--filter", "x:("), 1, "error: the filter `x:(` is invalid"),
        (("show", REGULAR, "--metric", "insert.p96"), 1, 'error: there is no metric "insert.p96" in regular.log\n'),
        (("report", REGULAR), 1, f"error: {REGULAR} is a file, so the report needs an output directory\n"),
        (("import", REGULAR, "--fact", "clients"), 2, "error: "),
        (("import", REGULAR, "--results", "/dev/null"), 1, "error: cannot create /dev/null/imported/"),
        (("import", "gone.log"), 1, "error: "),
        (("run", "gone.yaml"), 2, "error: cannot read the experiment: No such file"),
        (("export", REGULAR, "-o", "gone/values.csv"), 1, "error: cannot write gone/values.csv"),
        (("show", "."), 1, "error: . is not a result folder: it has no folder.json\n"),
        (
            ("run", "thousands.yaml", "--dry-run"),
            2,
            "error: rate must be a number of operations per second above 0, got",
        ),
        (("check", "thousands.yaml"), 1, "error: thousands.yaml is an experiment, not a result\nhint: name a result"),
    ],
)
def test_bad_usage_is_one_error_and_one_hint(
    tmp_path: Path, text: tuple[str | Path, ...], code: int, message: str
) -> None:
    (tmp_path / "thousands.yaml").write_text(f"systems: [lmdb]\nworkload: {ROOT}/workloads/workloada\nrate: 10k\n")
    done = loadstone(tmp_path, *text, code=code)
    assert done.stdout == ""
    assert done.stderr.startswith(message), done.stderr
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    assert find_folders(tmp_path / "results") == []


def test_hints_of_an_experiment_name_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "thousands.yaml").write_text(f"systems: [lmdb]\nworkload: {ROOT}/workloads/workloada\nrate: 10k\n")
    assert "hint: write 10000\n" in loadstone(tmp_path, "run", "thousands.yaml", code=2).stderr
    checked = loadstone(tmp_path, "check", "thousands.yaml", code=1).stderr
    assert "`loadstone run thousands.yaml --dry-run` shows the experiment's plan" in checked


def test_the_help_of_ycsb_shows_what_it_adds(tmp_path: Path) -> None:
    output = loadstone(tmp_path, "ycsb", "--help").stdout
    for option in ("--search LOAD", "--print-spec", "-strict", "-cp PATH"):
        assert option in output


def test_intended_guarantee_differences_are_stated_for_remaining_columns(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = [
        f"{name},{size},{n},throughput,{size}00{n},op/s" for name, size in (("a", 1), ("b", 2)) for n in range(1, 9)
    ]
    table.write_text("\n".join(["variant,size,repeat,metric,value,unit", *rows]))
    (tmp_path / "t.facts.yaml").write_text("variants: {a: {durability: device}, b: {durability: os}}")
    text: list[str | Path] = ["show", table, "--row", "", "--col", "size"]
    assert "sides-differ (invalid)" in loadstone(tmp_path, *text).stdout
    assert "2 holds 1.99" in loadstone(tmp_path, *text, "--set", "compare.promises=[durability]").stdout


def test_the_question_of_results_can_be_changed(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = [
        f"{system},{repeat},throughput,{1000 + 3 * repeat + 20 * (system == 'b')},op/s"
        for system in "ab"
        for repeat in range(8)
    ]
    table.write_text("\n".join(["system,repeat,metric,value,unit", *rows]).replace(",0,", ",8,"))
    as_it_is = loadstone(tmp_path, "show", table, "--col", "system").stdout
    assert "b holds 1.02" in as_it_is
    changed = loadstone(tmp_path, "show", table, "--col", "system", "--set", "compare.matters=10%").stdout
    assert "a difference of less than 10 % in throughput between b and a" in changed
    other = loadstone(tmp_path, "show", table, "--col", "system", "--set", "compare.baseline=b").stdout
    assert "b holds 1.02" in other
    for setting, message in (
        ("compare.by=colour", 'there is no dimension "colour"'),
        ("compare.matter=1%", 'there is no key "matter" in compare'),
        ("clients=4", "clients cannot be changed after the run"),
        ("checks.errors.shar=1", "there is no threshold or check errors.shar"),
    ):
        ended = loadstone(
            tmp_path, "show", table, "--set", setting, code=1 if "shar" in setting or "by" in setting else 2
        )
        assert message in ended.stderr


def test_small_commands_import_no_large_package() -> None:
    helps = [[command, "--help"] for command in LAB_COMMANDS]
    lines = [["--help"], ["list", "--results", str(RESULTS)], ["show", str(RESULTS / "v2")], *helps]
    script = """
import contextlib, io, json, sys
from loadstone.cli import run
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.suppress(SystemExit):
        run(arguments)
    large = {"altair", "pandas", "pyarrow", "scipy", "vl_convert"} & sys.modules.keys()
    print(arguments, bool(output.getvalue()), *large)
"""
    done = subprocess.run([sys.executable, "-c", script, json.dumps(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{arguments} True" for arguments in lines]
