"""Searches on real stores: from an experiment file and from YCSB's own command line to the answer."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections import Counter
from pathlib import Path

import pytest

from figure_support import find_conflicts
from jvm_support import CORE
from lab_support import ROOT, engines, experiment, loadstone, outline, rows, single_folder, start, trials
from loadstone.commands import search
from loadstone.commands.parser import UsageError
from loadstone.commands.search import line_document, parse_line
from loadstone.experiment.file import load_experiment
from loadstone.experiment.plan.forecast import share_servers
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.judge.judge import judge_results
from loadstone.results.folder import Folder
from loadstone.search.rule import CONFIRMATIONS

pytestmark = pytest.mark.usefixtures("engine_variable")

# Large values keep the engine's share of the time small, even with a fast store. The thresholds tolerate other load on
# the host.
SEARCH = """
systems: {first: {store: lmdb}}
workload:
  file: %s/workloads/workloadc
  properties: {recordcount: 100, fieldlength: 4000}
find: {to: 4}
measure: {warmup: 0, duration: 100ms}
load: {reuse: copy}
checks: {generator-limited: {driver: 1, late: 1}}
"""
# Fields long enough to keep the engine's share of an operation far below the judge's threshold.
SMALL = ("-p", "recordcount=100", "-p", "fieldlength=20000", "-p", "lmdb.dir=mine")
YCSB = ("ycsb", "run", "lmdb", "-P", ROOT / "workloads/workloadc", *SMALL)


def searching(home: Path, find: str, *replacements: tuple[str, str]) -> Path:
    """Writes an experiment with `find`."""
    text = SEARCH.replace("{to: 4}", find)
    for before, after in replacements:
        assert before in text
        text = text.replace(before, after)
    return experiment(home, text)


def read_answer(folder: Folder) -> str:
    """The answer of a folder; checks that its report has one value for each figure."""
    judgement = judge_results(folder.load_results())
    assert find_conflicts(judgement) == []
    return judgement.answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, module_engine_variable: None) -> Path:
    """The directory of a search for a knee, run once."""
    path = tmp_path_factory.mktemp("search")
    loadstone(path, "run", searching(path, "{to: 4}"))
    return path


def test_every_probe_is_an_ordinary_trial(home: Path) -> None:
    folder = single_folder(home)
    results = trials(folder)
    assert {result.end for result in results} == {"done"}
    assert {result.config["clients"] for result in results} == {1, 2, 4}
    assert all(result.clients == result.config["clients"] and result.loop == "closed" for result in results)
    assert [result.order for result in results] == list(range(len(results)))
    probes = Counter(result.config["clients"] for result in results)
    assert all(3 <= count <= 6 for count in probes.values())
    for clients, count in probes.items():
        assert [result.repeat for result in results if result.config["clients"] == clients] == list(range(1, count + 1))
    assert list(folder.load_results().planned) == [result.trial for result in results]
    # The order of loads is not random, so repeats are not blocks for pairing.
    assert not folder.load_results().interleaved
    for result in results:
        assert (folder.path / "trials" / result.trial / "run.hlog").exists()


def test_table_report_and_document_say_the_same(home: Path) -> None:
    folder = single_folder(home)
    answer = read_answer(folder)
    assert "probes, " in answer
    output = loadstone(home, "show", "small").stdout
    assert answer in output
    assert "\nprobes" in output
    assert "The search stopped because " in output
    (search,) = json.loads(loadstone(home, "show", "small", "--json").stdout)["searches"]
    assert [probe["load"] for probe in search["probes"]] == [1, 2, 4]
    assert sum(probe["trials"] for probe in search["probes"]) == len(trials(folder))
    report = (folder.path / "report.md").read_text()
    assert "## Search\n\nSearched for the knee over clients from 1 to 4" in report
    assert "The search stopped because " in report
    assert "<h2>Search</h2>" in (folder.path / "report.html").read_text()


def test_resuming_a_finished_search_runs_nothing(home: Path) -> None:
    before = (single_folder(home).path / "values.jsonl").read_bytes()
    stderr = loadstone(home, "run", home / "small.yaml", "--resume", "--no-report").stderr
    assert "all searches are finished" in stderr
    assert (single_folder(home).path / "values.jsonl").read_bytes() == before


def test_the_plan_describes_the_search(home: Path) -> None:
    output = loadstone(home, "run", home / "small.yaml", "--dry-run").stdout
    assert "1 search for the knee over clients from 1 to 4: at most 11 probes of 3 to 6 trials each" in output


def test_the_resolved_experiment_searches_for_the_same(home: Path) -> None:
    resolved = single_folder(home).path / "experiment.yaml"
    output = loadstone(home, "run", resolved, "--dry-run").stdout
    assert "1 search for the knee over clients from 1 to 4: at most 11 probes of 3 to 6 trials each" in output


def test_variants_are_searched_concurrently(tmp_path: Path) -> None:
    file = searching(
        tmp_path, "{to: 2, such_that: p50 < 100s}", ("{first: {store: lmdb}}", "{a: {store: lmdb}, b: {store: lmdb}}")
    )
    loadstone(tmp_path, "run", file, "--no-report")
    folder = single_folder(tmp_path)
    blocks = [json.loads(line)["trials"] for line in (folder.path / "plan.jsonl").read_text().splitlines()]
    assert [sorted(trial["config"]["system"] for trial in block) for block in blocks] == [["a", "b"]] * (
        3 + CONFIRMATIONS
    )
    assert len({tuple(trial["config"]["system"] for trial in block) for block in blocks}) == 2
    answer = read_answer(folder)
    for system in "ab":
        assert f"{system}: p50 < 100s holds up to 2 clients, where the search stopped: p50 " in answer


def test_ctrl_c_keeps_the_probes_and_resume_continues(tmp_path: Path) -> None:
    file = searching(tmp_path, "{to: 4, such_that: p50 < 100s}", ("duration: 100ms", "duration: 1s"))
    process = start(tmp_path, "run", file, "--no-report")
    assert process.stderr
    output = ""
    while output.count("✓") < 4:
        line = process.stderr.readline()
        assert line, "the search ended too early"
        output += line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert engines(tmp_path) == []
    retained = outline(single_folder(tmp_path))
    assert 4 <= len(retained) < 6 + CONFIRMATIONS
    loadstone(tmp_path, "run", file, "--resume", "--no-report")
    folder = single_folder(tmp_path)
    assert outline(folder)[: len(retained)] == retained
    assert len(rows(folder)) == len(folder.load_results().planned) == 6 + CONFIRMATIONS
    assert "holds up to 4 clients, where the search stopped" in read_answer(folder)
    assert f"; 3 probes, {6 + CONFIRMATIONS} trials" in read_answer(folder)


def test_an_objective_that_no_load_meets_is_reported(tmp_path: Path) -> None:
    file = searching(tmp_path, "{from: 2, to: 8, such_that: p50 < 0.001us and errors == 0}")
    loadstone(tmp_path, "run", file, "--no-report")
    answer = read_answer(single_folder(tmp_path))
    assert answer.startswith("p50 < 0.001us and errors == 0 does not hold even at 2 clients: p50 ")
    # A single trial might be an outlier.
    assert {trial.config["clients"] for trial in trials(single_folder(tmp_path))} == {2, 4}


def test_a_rate_is_searched_in_an_open_loop(tmp_path: Path) -> None:
    file = searching(tmp_path, "{over: rate, from: 100, to: 400, such_that: p50 < 100s}", ("100ms", "1s"))
    loadstone(tmp_path, "run", file, "--no-report", "--set", "clients=2")
    folder = single_folder(tmp_path)
    results = trials(folder)
    assert {(result.loop, result.clients) for result in results} == {("open", 2)}
    # A trial that the machine delays at the end misses its rate, so this load gets more trials.
    counts = Counter(trial.config["rate"] for trial in results)
    assert [*counts] == [100, 200, 400]
    assert all(3 <= count <= CONFIRMATIONS for count in counts.values())
    assert read_answer(folder).startswith("p50 < 100s holds up to 400 op/s, where the search stopped: p50 ")


def test_too_few_operations_for_percentiles_end_the_search(tmp_path: Path) -> None:
    file = searching(tmp_path, "{over: rate, from: 100, to: 400, such_that: p99 < 100s}")
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    answer = read_answer(single_folder(tmp_path))
    pattern = r"the probe at 100 op/s is invalid: (\d+) operations are too few for p99: measure longer"
    # Ten operations are due; the last may be too late.
    assert (match := re.search(pattern, answer)), answer
    assert 1 <= int(match[1]) <= 10


def test_rate_of_a_workload_file_opens_the_loop(tmp_path: Path) -> None:
    (tmp_path / "paced").write_text((ROOT / "workloads/workloadc").read_text() + "target=100\n")
    file = searching(tmp_path, "{to: 64}", ("%s/workloads/workloadc", str(tmp_path / "paced")))
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    message = "the probe at 1 client is invalid: the loop is open: the workload file sets a rate"
    assert message in read_answer(single_folder(tmp_path))


def test_generator_limit_ends_the_search_with_its_name(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An engine that reports 1 ms per operation for its own loop.
    slow = tmp_path / "slow"
    slow.write_text(
        f"""#!/bin/sh
[ "$1" = trial ] || exec {program} "$@"
{program} trial | sed -u 's/"driver_ns":[0-9.]*/"driver_ns":1000000/'
"""
    )
    slow.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(slow))
    file = searching(tmp_path, "{to: 64}", ("driver: 1,", "driver: 0.1,"))
    output = loadstone(tmp_path, "run", file, "--no-report", code=1).stdout
    assert "no knee was found: the probe at 1 client is invalid: generator-limited: " in output
    assert len(trials(single_folder(tmp_path))) == 2


def test_search_ends_at_a_refused_load(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # This stand-in for the engine refuses four clients, as on a host with low limits.
    narrow = tmp_path / "narrow"
    narrow.write_text(
        f"""#!/bin/sh
[ "$1" = trial ] || exec {program} "$@"
read -r spec
case $spec in *'"clients": 4,'*) echo 'error: 4 threads are too many here' >&2; exit 1 ;; esac
(echo "$spec"; cat) | {program} trial
"""
    )
    narrow.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(narrow))
    loadstone(tmp_path, "run", searching(tmp_path, "{to: 64, such_that: p50 < 100s}"), "--no-report")
    answer = read_answer(single_folder(tmp_path))
    assert answer.startswith("p50 < 100s holds at 2 clients: p50 ")
    assert "; the probe at 4 clients is invalid: incomplete: " in answer
    assert "4 threads are too many here" in answer


def test_a_search_runs_from_ycsbs_command_line(tmp_path: Path) -> None:
    arguments = ("--search=clients", "--search-to", "2", "--such-that", "p50 < 100s", "--search-seconds", "0.2")
    result = loadstone(tmp_path, *YCSB, "-s", *arguments)
    assert result.stdout.startswith("How much load can lmdb sustain on workloadc?\np50 < 100s holds up to 2 clients")
    folder = single_folder(tmp_path)
    assert folder.name == "ycsb-lmdb-workloadc-clients"
    for trial in trials(folder):
        spec = json.loads((folder.path / "trials" / trial.trial / "run.spec.json").read_text())
        assert spec["until"] == {"seconds": 0.2}
        assert spec["work"]["records"] == 100
        assert spec["work"]["field_length"] == {"distribution": "constant", "bytes": 20000}
        assert "mine" not in spec["store"]["properties"]["lmdb.dir"]
    assert not (tmp_path / "mine").exists()


def test_properties_have_equal_meaning_in_search_and_run(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.write_text("readproportion=0.5\nupdateproportion=0.5\nfieldcount=3\nmaxexecutiontime=7\nwarmuptime=0.5\n")
    arguments = (
        "-P",
        more,
        "-p",
        "fieldcount=2",
        "-threads",
        "3",
        "-p",
        "durability=none",
        "-p",
        "lmdb.mapsize=1000000000",
    )
    output = loadstone(tmp_path, *YCSB, *arguments, "--search", "rate", "--dry-run").stdout
    assert "1 search for the knee over rate from 1,000 to 1,000,000" in output
    assert "warm up 500ms, measure 7s" in output
    assert output.splitlines()[-1].split() == ["lmdb", "1,000", "op/s", "uniform", "lmdb", "none", "3", "workloadc"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("ycsb", "load", "lmdb", "--search", "clients"), "a search needs `ycsb run`"),
        (("ycsb", "run", "lmdb", "--search", "clients"), "a search needs a workload file"),
        ((*YCSB, "--search", "threads"), '--search must be clients or rate, got "threads"'),
        ((*YCSB, "--search"), "--search needs a value"),
        ((*YCSB, "--search", "clients", "-target", "100"), "--search clients is a closed loop, but a target is set"),
        ((*YCSB, "--search", "clients", "-load"), "-load cannot be combined with --search"),
        ((*YCSB, "--search", "clients", "--such-that", "fast"), 'find.such_that: "fast" is not an objective'),
        ((*YCSB, "--search", "clients", "--search-to", "many"), 'find.to must be a number above 0, got "many"'),
    ],
)
def test_an_invalid_search_is_bad_usage(tmp_path: Path, text: tuple[str | Path, ...], message: str) -> None:
    stderr = loadstone(tmp_path, *text, code=2).stderr
    assert message in stderr
    assert "\nhint: " in stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("length", ["5m", "5s", "-1", ""])
def test_a_window_is_a_number_of_seconds(length: str) -> None:
    spec = {"store": {"name": "lmdb", "durability": "os", "properties": {}}, "clients": 1}
    line = parse_line([*map(str, YCSB[1:]), "-p", f"maxexecutiontime={length}", "--search=clients"])
    with pytest.raises(UsageError, match="must be a number of seconds"):
        line_document(line, spec)


def test_the_engines_errors_about_arguments_are_shown(tmp_path: Path) -> None:
    stderr = loadstone(tmp_path, *YCSB, "-p", "recordcount=many", "--search", "clients", code=2).stderr
    assert "recordcount" in stderr
    assert "Traceback" not in stderr


def test_servers_are_attached_at_the_given_address() -> None:
    line = parse_line(
        ["run", "redis", *map(str, YCSB[3:5]), "-p", "redis.host=10.0.0.1", "-p", "redis.port=7000", "--search=clients"]
    )
    spec = {"store": {"name": "redis", "durability": "os", "properties": {}}, "clients": 1}
    result = line_document(line, spec)
    assert result["systems"] == {"redis": {"properties": {}, "attach": {"hosts": ["10.0.0.1"], "port": 7000}}}
    assert result["workload"]["properties"] == {}
    # Servers' data is loaded once and changed by every trial; the user must be warned about this.
    assert result["load"] == {"reuse": "shared"}
    (warning,) = search.line_experiment(line, spec).warnings
    assert "loads its records into an existing table of redis" in warning.message


def test_search_on_an_embedded_store_copies_its_data() -> None:
    spec = {"store": {"name": "lmdb", "durability": "os", "properties": {}}, "clients": 1}
    assert search.line_experiment(parse_line([*map(str, YCSB[1:]), "--search=clients"]), spec).warnings == ()


def test_a_ycsb_binding_is_searched_like_a_store(tmp_path: Path) -> None:
    binding = ("jvm", "-db", "site.ycsb.BasicDB", "-cp", f"{CORE.parent}/*", "-jvm-args", "-Xmx64m")
    # The binding sleeps 1 ms per operation; otherwise the engine would be the bottleneck.
    delay = ("-p", "basicdb.simulatedelay=1", "-p", "basicdb.randomizedelay=false", "-p", "basicdb.verbose=false")
    arguments = ("-p", "recordcount=100", *delay, "-p", "jvm.networked=true")
    where = ("--search", "clients", "--search-to", "2", "--search-seconds", "0.2")
    loadstone(tmp_path, "ycsb", "run", *binding, "-P", ROOT / "workloads/workloadc", *arguments, *where, "--no-report")
    results = trials(single_folder(tmp_path))
    assert {result.config["clients"] for result in results} == {1, 2}
    assert {result.end for result in results} == {"done"}
    spec = json.loads((single_folder(tmp_path).path / "trials" / results[0].trial / "run.spec.json").read_text())
    properties = spec["store"]["properties"]
    assert properties["jvm.class"] == "site.ycsb.BasicDB"
    assert properties["jvm.classpath"] == f"{CORE.parent}/*"
    assert properties["jvm.args"] == "-Xmx64m"
    assert properties["basicdb.verbose"] == "false"


def test_the_commands_of_the_guide_are_searches(tmp_path: Path) -> None:
    text = (ROOT / "docs/guides/finding-saturation.md").read_text()
    matches = re.findall(r"^    loadstone (ycsb .*--search .*)$", text, re.MULTILINE)
    assert len(matches) == 3
    for line in matches:
        command = [word.replace("workloads/", f"{ROOT}/workloads/") for word in shlex.split(line)]
        store = command[2]
        output = loadstone(tmp_path, *command, "-p", f"{store}.dir=mine", "--dry-run").stdout
        assert re.search(r"^trials     1 search for the ", output, re.MULTILINE)


def test_the_experiment_of_the_guide_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/guides/finding-saturation.md").read_text(), re.DOTALL)
    output = loadstone(tmp_path, "run", experiment(tmp_path, text.replace("..", str(ROOT))), "--dry-run").stdout
    assert "3 searches for the highest load that meets p99 < 10ms over clients from 1 to 512" in output
    assert "warning" not in output


@pytest.mark.parametrize(("seconds", "systems"), [(40, {"1-node"}), (500, {"1-node", "2-nodes", "3-nodes"})])
def test_slow_servers_are_searched_one_after_another(seconds: float, systems: set[str]) -> None:
    planned = plan_experiment(load_experiment(ROOT / "experiments/more/cassandra-capacity.yaml").experiment)
    chosen = share_servers(planned.variants, seconds)
    assert {planned.variants[at].config["system"] for at in chosen} == systems
