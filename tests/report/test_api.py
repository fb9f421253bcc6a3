"""The Python interface: its tables, percentiles, judgement and charts equal the report and the command line."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import loadstone
from lab_support import ROOT, SMALL, experiment
from lab_support import loadstone as command
from loadstone.api import reference
from loadstone.api.frames import format_setting
from loadstone.commands.show_results import judgement_document
from loadstone.engine.histogram import Histogram
from loadstone.experiment.file import load_experiment
from loadstone.results import export, lines
from loadstone.results.folder import Folder
from loadstone.results.hlog import write_histograms
from loadstone.results.result_set import Question
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from results_support import intervals, merge_by_tag, trial
from test_expectations import make_run, scatter

FIXTURE = ROOT / "tests/fixtures/results/v2"
IMPORTS = ROOT / "tests/fixtures/imports"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api")


@pytest.fixture(scope="module")
def run(home: Path) -> loadstone.Run:
    """A small experiment, run through the interface."""
    file = experiment(home, SMALL)
    return loadstone.run(
        file,
        set={"repeats": 2, "vary.letter": ["a", "b"], "workload.file": f"{ROOT}/workloads/workload{{letter}}"},
        results=home / "results",
        share_host=True,
    )


def test_run_leaves_a_reproducible_folder(run: loadstone.Run) -> None:
    assert (len(run.results.trials), run.dimensions["letter"]) == (8, ["a", "b"]), run.trials
    assert run.path is not None
    header = Folder(run.path).header
    assert header["command"].startswith("loadstone run "), "not the command line of the notebook's kernel"
    assert '--set \'vary.letter=["a", "b"]\'' in header["command"]
    assert run.results.environment["command"][:2] == ["loadstone", "run"]


def test_figures_equal_the_command_lines_export(run: loadstone.Run, home: Path) -> None:
    assert run.path is not None
    exported = list(csv.DictReader(io.StringIO(command(home, "export", run.path).stdout)))
    rows = run.figures.to_pylist()
    assert [row.pop("value") for row in rows] == [float(row.pop("value")) for row in exported]
    assert [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows] == exported


def test_percentiles_equal_the_figures_of_trials(run: loadstone.Run) -> None:
    checked = 0
    for row in run.figures.to_pylist():
        operation, _, statistic = row["metric"].partition(".")
        if operation in ("read", "update", "all") and statistic.startswith("p"):
            latencies = run.latencies(operation, filter=f"trial:{row['trial']}")
            percentile = latencies.percentile(float(statistic[1:]))
            assert (percentile.value, percentile.bound, latencies.n) == (row["value"], row["bound"], row["n"]), row
            checked += 1
    assert checked >= 8 * 2 * 11


def test_merged_percentiles_are_exact(run: loadstone.Run) -> None:
    total = Histogram()
    for result in run.results.trials:
        directory = run.results.files(result.trial)
        assert directory is not None
        total.add_histogram(merge_by_tag(intervals(directory / "run.hlog"))["READ"])
    latencies = run.latencies("read")
    assert [latencies.percentile(percent).value for percent in (50, 99.9, 100)] == [
        total.value_at_quantile(share) for share in (0.5, 0.999, 1)
    ]
    halves = [run.latencies("read", filter=f"system:{name}") for name in ("first", "second")]
    assert (halves[0] + halves[1]).percentile(99.9) == latencies.percentile(99.9)
    assert sum(latencies.to_arrow()["count"].to_pylist()) == latencies.n


def test_judgement_equals_show_on_the_command_line(run: loadstone.Run, home: Path) -> None:
    assert run.path is not None
    document = json.loads(command(home, "show", run.path, "--json").stdout)
    judgement = run.judgement
    assert (judgement.answer, judgement.verdict) == (document["answer"], document["verdict"])
    names = ("metric", "by", "ratio", "claim", "why", "p", "verdict", "n")
    rows = judgement.comparisons.to_pylist()
    assert [[row[name] for name in names] for row in rows] == [
        [comparison[name] for name in names] for comparison in document["comparisons"]
    ]
    figures = {(row["system"], row["letter"], row["metric"]): row["value"] for row in judgement.figures.to_pylist()}
    for cell in document["cells"]:
        assert figures[cell["variant"]["system"], cell["variant"]["letter"], cell["metric"]] == cell["value"]
    assert len(judgement.findings) == len(document["findings"])


def test_changed_question_equals_the_command_lines(run: loadstone.Run, home: Path) -> None:
    assert run.path is not None
    options = ("--set", "compare.by=letter", "--set", "compare.baseline=b", "--metric", "read.p50")
    document = json.loads(command(home, "show", run.path, "--json", *options).stdout)
    judgement = run.compare(by="letter", baseline="b", metrics="read.p50")
    assert judgement.answer == document["answer"]
    assert {row["baseline"] for row in judgement.comparisons.to_pylist()} == {"b"}
    with pytest.raises(loadstone.LoadstoneError, match='no dimension "clients"'):
        run.compare(by="clients")


def test_charts_equal_the_reports(run: loadstone.Run, home: Path) -> None:
    assert run.path is not None
    command(home, "report", run.path, "-o", home / "report")
    written = {path.stem: path.read_text() for path in (home / "report/report").glob("*.svg")}
    assert set(run.charts) == set(written) >= {"throughput", "percentiles", "throughput-over-time"}
    for name, chart in run.charts.items():
        chart.save(home / f"{name}.svg")
        assert (home / f"{name}.svg").read_text() == written[name], name


def test_tables_convert_to_data_frames(run: loadstone.Run) -> None:
    throughput = [row["value"] for row in run.figures.to_pylist() if row["metric"] == "throughput"]
    pandas, polars = run.to_pandas(), run.to_polars()
    assert pandas[pandas["metric"] == "throughput"]["value"].tolist() == throughput
    assert polars.filter(polars["metric"] == "throughput")["value"].to_list() == throughput
    assert len(run.to_pandas("intervals")) == len(run.intervals) > len(run.trials)
    assert run.judgement.to_polars("scenarios").height == len(run.judgement.scenarios)
    assert {"memory.available", "processors.cpu.user"} <= set(run.samples.column_names)
    assert set(run.hosts["host"].to_pylist()) == {"localhost"}


def test_import_loads_no_large_package() -> None:
    heavy = ("altair", "numpy", "pandas", "polars", "pyarrow", "pydantic", "scipy", "loadstone.api")
    script = "import sys, loadstone; dir(loadstone); print([name for name in sys.argv[1:] if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    script = f"import loadstone; loadstone.open({str(FIXTURE)!r}); " + script
    done = subprocess.run([sys.executable, "-c", script, *heavy[:5]], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "tables must be created at their first use"


def test_opening_a_folder_imports_no_pandas() -> None:
    code = f"import sys, loadstone; loadstone.open({str(FIXTURE)!r}).trials; print('pandas' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "", "µs ☃"],
        [1, None, -(2**63), 2**63 - 1],
        [0.5, None, -0.0, 1e308],
        [None, None],
        [True, None],
        [1, 2.5, None],
        [["a"], None],
        [],
        [None] * 8 + ["z"],
    ],
)
def test_packed_columns_equal_arrow_arrays(values: list[object]) -> None:
    column = export.build_column(values, None)
    column.validate(full=True)
    assert column.equals(pa.array(values))
    assert column.type == pa.array(values).type
    assert export.build_column([*values, *values], None).slice(len(values)).equals(pa.array(values))


def test_integers_beyond_arrow_become_text() -> None:
    assert export.build_column([2**63, None], None).to_pylist() == [str(2**63), None]
    assert export.build_column([1, None], "float64").to_pylist() == [1.0, None]


def test_logs_of_other_tools_load() -> None:
    log = loadstone.load(IMPORTS / "regular.log", IMPORTS / "accelerated.log", facts={"clients": 4})
    assert log.to_pandas("trials")["clients"].tolist() == [4, 4]
    with pytest.raises(loadstone.LoadstoneError, match="have no histograms"):
        log.latencies("insert")
    sides = loadstone.compare(IMPORTS / "regular.log", IMPORTS / "accelerated.log")
    (throughput, *_) = sides.judgement.comparisons.to_pylist()
    assert (round(throughput["ratio"], 2), throughput["claim"]) == (4.56, "impossible")
    joined = loadstone.load(IMPORTS / "regular.log").compare(IMPORTS / "accelerated.log")
    assert joined.comparisons.to_pylist()[0]["ratio"] == throughput["ratio"]


def test_loaded_histogram_log_has_latencies(run: loadstone.Run) -> None:
    files = run.results.files(run.results.trials[0].trial)
    assert files is not None
    for loaded in (loadstone.load(files / "run.hlog"), loadstone.open(files / "run.hlog")):
        assert loaded.latencies("read").n == loaded.figures.filter(pc.field("metric") == "read.p99")["n"][0].as_py()
        assert len(loaded.histograms) > 0


def test_text_keys_receive_texts() -> None:
    for text in ("Which: a or b?", "yes", "# 1?", "[a"):
        setting = format_setting("question", text)
        loaded = load_experiment(ROOT / "experiments/quickstart.yaml", None, [setting])
        assert loaded.experiment.question == text
    assert format_setting("measure.duration", "5s") == "measure.duration=5s"


def test_unknown_table_is_refused(run: loadstone.Run) -> None:
    for of in (run, run.judgement):
        with pytest.raises(loadstone.LoadstoneError, match='there is no table "nope"'):
            of.to_pandas("nope")  # type: ignore[arg-type]


def test_judgement_tables_equal_their_json() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(900, seed=2)}, "throughput >= 0.95x", "errors == 0")
    judgement = loadstone.Run(results).judgement
    document = judgement_document(judgement.judged)
    for row, expected in zip(judgement.expectations.to_pylist(), document["expectations"], strict=True):
        assert {name: row[name] for name in ("text", "answer", "value")} == {
            name: expected[name] for name in ("text", "answer", "value")
        }
    assert len(judgement.searches) == 0
    assert judgement.verdict == document["answer_verdict"]


def test_nothing_to_read_is_refused(run: loadstone.Run) -> None:
    with pytest.raises(loadstone.LoadstoneError, match="no files to load"):
        loadstone.load()
    with pytest.raises(loadstone.LoadstoneError, match="at least two results"):
        loadstone.compare(run, [])


def test_reference_page_is_current() -> None:
    assert (ROOT / reference.PAGE).read_text() == reference.page(), "python -m loadstone.api.reference"


def write_crafted(path: Path) -> Folder:
    """A folder with attempts that must not count, a damaged line, and an unreadable histogram log."""
    folder = Folder.create_folder(path, "crafted", Question(by="system"), interleaved=True)
    table = path / "values.jsonl"

    def run_trial(result: TrialResult, latencies: dict[int, int] | None) -> None:
        with folder.open_attempt(result.trial, result.attempt) as files:
            if latencies is not None:
                histogram = Histogram()
                histogram.counts.update(latencies)
                write_histograms(files / "run.hlog", {"READ": histogram})
        folder.append_trial(result)

    # A failed attempt, the attempt that counts, and an interrupted attempt.
    run_trial(trial("a", {"system": 1}, 10.0, end="failed", order=0), {5: 7})
    run_trial(trial("a", {"system": 1}, 20.0, attempt=2, order=0), {100: 9, 200: 1})
    run_trial(trial("a", {"system": 1}, 99.0, attempt=3, end="interrupted", order=0), {1: 1000})
    run_trial(trial("b", {"system": "two"}, 30.0, order=1), {100: 10})
    run_trial(trial("c", {"system": "two"}, 40.0, repeat=2, order=2), None)
    line = json.dumps(trial("d", {"system": "two"}, 50.0).to_json())
    with table.open("a") as file:
        file.write(line.replace("50.0", "NaN") + "\n" + line[:-30] + "\n")
    return folder


def test_only_counting_attempts_are_read(tmp_path: Path) -> None:
    run = loadstone.open(write_crafted(tmp_path / "crafted").path)
    rows = run.trials.to_pylist()
    assert [(row["trial"], row["attempt"], row["failures"], row["interruptions"]) for row in rows] == [
        ("a", 2, 1, 1),
        ("b", 1, 0, 0),
        ("c", 1, 0, 0),
    ]
    assert [row["system"] for row in rows] == ["1", "two", "two"], "values of two types are text"
    throughput = [row["value"] for row in run.figures.to_pylist() if row["metric"] == "throughput"]
    assert throughput == [20.0, 30.0, 40.0]
    assert [warning.split()[:3] for warning in run.warnings] == [
        ["values.jsonl:6", "is", "damaged"],
        ["values.jsonl:7", "is", "damaged"],
    ]
    latencies = run.latencies("read", filter="trial:(a OR b)")
    assert (latencies.n, latencies.percentile(95).value, latencies.percentile(100).value) == (20, 100, 200)


def test_missing_histograms_are_named(tmp_path: Path) -> None:
    folder = write_crafted(tmp_path / "crafted")
    run = loadstone.open(folder.path)
    message = "1 of 3 trials has no histograms for the phase run, for example c"
    with pytest.raises(loadstone.LoadstoneError, match=message):
        run.latencies("read")
    with pytest.raises(loadstone.LoadstoneError, match='no operation "scan"'):
        run.latencies("scan", filter="trial:b")
    log = folder.files_of("b", 1) / "run.hlog"
    log.write_text(log.read_text()[:-40])
    with pytest.raises(loadstone.LoadstoneError, match="damaged"):
        run.latencies("read", filter="trial:b")
    with pytest.warns(UserWarning, match="omitted: "):
        histograms = run.histograms
    assert histograms["trial"].to_pylist() == ["a", "a"], "read and all"


def test_failed_and_unanswered_operations_count(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "open", "open", Question(), interleaved=True)
    tags = {
        "READ": {100: 5},
        "READ-response": {200: 5},
        "READ-ERROR-response": {10: 2},
        "READ-CENSORED-response": {150: 3},
    }
    with folder.open_attempt("a") as files:
        histograms = {tag: Histogram() for tag in tags}
        for tag, counts in tags.items():
            histograms[tag].counts.update(counts)
        write_histograms(files / "run.hlog", histograms)
    folder.append_trial(TrialResult("a", {}, 1, values_by_metric(Value("throughput", 1, "op/s", 5))))
    latencies = loadstone.open(folder.path).latencies("read")
    assert (latencies.n, latencies.failed, latencies.censored) == (10, 2, 3)
    assert [(latencies.percentile(percent).value, latencies.percentile(percent).bound) for percent in (30, 80, 90)] == [
        (150, "at_least"),
        (200, "at_least"),
        (200, "failed"),
    ]
    service = loadstone.open(folder.path).latencies("read.service")
    assert (service.n, service.percentile(100).value) == (5, 100)
    with pytest.raises(ValueError, match="0 to 100"):
        service.percentile(101)
    with pytest.raises(ValueError, match="0 to 100"):
        service.percentile(math.nan)


def test_unanswered_latencies_share_one_notation(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "staged", "staged", Question(), interleaved=False)
    for stage, errors in (("stage1", 0), ("stage2", 3)):
        figures = [
            Value(f"{stage}.read.p99", 1e6, "ns", 9, "failed"),
            Value(f"{stage}.errors", errors, "operations", 9),
        ]
        folder.append_trial(TrialResult(stage, {"stage": stage}, 1, values_by_metric(*figures)))
    run = loadstone.open(folder.path)
    expected = {"stage1.read.p99": "unanswered", "stage2.read.p99": "failed"}
    for table in (run.figures, run.judgement.figures):
        assert {row["metric"]: row["bound"] for row in table.to_pylist() if row["bound"]} == expected
    file = tmp_path / "staged.csv"
    export.write_figures(run.results, "", file)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert {row["metric"]: row["bound"] for row in rows if row["bound"]} == expected
    (loaded,) = [item for item in loadstone.load(file).results.trials if "stage1.read.p99" in item.values]
    assert loaded.values["stage1.read.p99"].bound == "failed"


def test_figure_tables_equal_for_all_types(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "odd", "odd", Question(), interleaved=False)
    configs: list[dict[str, int | float | bool]] = [{"trial": 1}, {"trial": 2.5}, {"other": True}, {"trial": 10**30}]
    for number, config in enumerate(configs):
        folder.append_trial(trial(f"t{number}", config, 1.0))
    run = loadstone.open(folder.path)
    assert run.trials["trial_"].to_pylist() == ["1", "2.5", None, str(10**30)]
    assert run.trials["other"].to_pylist() == [None, None, True, None]
    assert len(run.figures) == 8
    assert len(run.intervals) == len(run.samples) == len(run.histograms) == 0


def test_tables_in_batches_equal_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "TRIALS_AT_ONCE", 2)
    folder = Folder.create_folder(tmp_path / "many", "many", Question(), interleaved=False)
    for number in range(5):
        values = values_by_metric(*(Value(f"m{k}", 2**60 + k, "B", k) for k in range(number % 3)))
        folder.append_trial(TrialResult(f"t{number}", {"size": number}, 1, values, facts={"a": 1, "b": "x"}))
    run = loadstone.open(folder.path)
    rows = [[*row.values()] for row in run.figures.to_pylist()]
    column = run.figures.column_names.index("value")
    # The table has floats, the CSV file the numbers as recorded.
    expected = [[*row[:column], float(row[column]), *row[column + 1 :]] for row in export.figure_rows(run.results)]
    assert rows == expected != []
    assert [row["fact"] for row in run.facts.to_pylist()] == ["a", "b"] * 5
    assert str(run.figures["value"].type) == "double"


def test_empty_folder_has_empty_tables(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "none", "none", Question(), interleaved=True)
    run = loadstone.open(folder.path)
    for name in ("trials", "figures", "intervals", "histograms", "facts", "hosts", "samples"):
        assert len(run.table(name)) == 0
    assert run.judgement.charts == {}
    assert lines.read_lines(folder.path / "values.jsonl").documents == []
    shutil.rmtree(folder.path)
    with pytest.raises(loadstone.LoadstoneError, match="there are no results"):
        loadstone.open(folder.path)
