"""Damaged, empty, mixed or extreme results cause no traceback and no false statement."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge_support import asking, experiment, facts
from lab_support import command, environment, loadstone
from loadstone.commands.check import main as check
from loadstone.commands.list import main as list_all
from loadstone.commands.show import main as show
from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.results.filter import parse_filter
from loadstone.results.folder import Folder
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Scalar, Series, TrialResult
from loadstone.results.union import join_results
from results_support import matrix, trial

WRONG: tuple[Any, ...] = (None, -1, "x", "", [], {}, [1], {"a": [1]}, True, 10**400)
SERIES = Series((0.0, 1.0), (1.0, 1.0), (9.0, 8.0), (1.0, None), (2.0, None), (0, 1))
CSV = "variant,repeat,clients,metric,unit,value,n\n"


def folder(path: Path) -> Path:
    """A folder with two trials, all optional content, and its plan."""
    folder_of = Folder.create_folder(
        path / "results/made/1",
        "made",
        Question("?", "system", "a", ("throughput",), 1, 2, 0.1, "device", True, {"noisy": {}}),
        interleaved=True,
    )
    folder_of.record_block(1, {f"t-{system}": {"system": system} for system in "ab"})
    for order, system in enumerate("ab"):
        more: dict[str, Any] = {
            "clients": 2,
            "loop": "closed",
            "facts": {"memory_bytes": 10**9, "cpus": 2, "durability": "os"},
            "statuses": {"READ": {"OK": 1000}},
            "notes": (Note("odd", "something", "see there"),),
        }
        result = trial(f"t-{system}", {"system": system}, 1000.0, order=order, start_unix_ns=1, **more)
        with folder_of.open_attempt(result.trial) as files:
            (files / "series.json").write_text(json.dumps(SERIES.to_json()))
        folder_of.append_trial(result)
    return folder_of.path


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of a document."""
    yield path
    for key, part in document.items() if isinstance(document, dict) else enumerate(document[:2]):
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))
        else:
            yield (*path, key)


def damage_document(document: Any, path: tuple[Any, ...], part: Any) -> Any:
    """The document with a part replaced; `...` deletes the part."""
    if not path:
        return part
    result = copy.deepcopy(document)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    if part is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = part
    return result


@pytest.mark.parametrize("name", ["values.jsonl", "plan.jsonl", "folder.json", "trials/t-a/series.json"])
def test_damaged_file_causes_no_traceback(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(tmp_path)
    first, *rest = (path / name).read_text().splitlines() if name.endswith("l") else [(path / name).read_text()]
    document = json.loads(first)
    commands = [(check, [str(path)]), (show, [str(path), "--json"]), (list_all, ["--results", str(path.parent.parent)])]
    for number, place in enumerate(places(document)):
        # Each place gets some of the wrong values, and each file gets all of them.
        for part in (..., *(WRONG[(number + offset) % len(WRONG)] for offset in range(3))):
            if part is ... and not place:
                continue
            (path / name).write_text("\n".join([json.dumps(damage_document(document, place, part)), *rest]) + "\n")
            for run, arguments in commands:
                assert run(arguments) in (0, 1, 2), (place, part)
    capsys.readouterr()


# Sets the window's title, clears the screen, and starts a control sequence with a single character (C1).
CONTROLS = "\x1b]0;title\x07\x1b[2J\u009b2J\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a result folder and a log, whose names, questions and facts contain control characters."""
    home = tmp_path_factory.mktemp("hostile")
    path = home / "results/made/1"
    name = f"a{CONTROLS}b"
    folder_of = Folder.create_folder(path, name, Question(f"is {name} fast?", by=name), interleaved=True)
    for order, system in enumerate((name, "c")):
        note = Note(name, f"note {name}", f"hint {name}")
        result = trial(f"t{order}", {name: system}, 9.0 + order, order=order, facts={name: system}, notes=(note,))
        folder_of.append_trial(result)
    (home / f"{name}.csv").write_text(f"{CSV}v{CONTROLS},1,1,throughput,op/s,5,9\n")
    return home


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["show", "made"]),
        (0, ["list"]),
        (0, ["check", "made", "-v"]),
        (0, ["compare", "made", f"a{CONTROLS}b.csv"]),
        (0, ["history", "made"]),
        (0, ["history", "made", "--markdown"]),
        (0, ["import", "--explain", f"a{CONTROLS}b.csv"]),
        (0, ["export", "made"]),
        (1, ["show", CONTROLS]),
        (2, [CONTROLS]),
        (2, ["check", "made", "--expect", CONTROLS]),
    ],
)
def test_control_characters_never_reach_the_terminal(hostile: Path, code: int, arguments: list[str]) -> None:
    done = loadstone(hostile, *arguments, code=code)
    output = done.stdout + done.stderr
    assert "\ufffd" in output
    assert not {"\x1b", "\x07", "\u009b", "\u202e"} & {*output}


def test_report_and_gate_have_no_control_characters(hostile: Path) -> None:
    loadstone(hostile, "report", "made")
    gate = ("--expect", "throughput > 1", "--summary", "summary.md")
    loadstone(hostile, "check", "made", *gate, code=3)
    folder_of = hostile / "results/made/1"
    paths = [hostile / "summary.md", *folder_of.glob("report.*"), *folder_of.glob("report/*.svg")]
    assert len(paths) > 3
    assert not [path.name for path in paths if "\x1b" in path.read_text() or "\u009b" in path.read_text()]


def test_narrow_character_set_is_no_traceback(tmp_path: Path) -> None:
    folder(tmp_path)
    variables = {**environment(tmp_path), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    show_made = command("show", "made")
    done = subprocess.run(show_made, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_unusable_names_of_results_have_hints(hostile: Path) -> None:
    assert "the name of a result is empty" in loadstone(hostile, "compare", "made,", "made", code=1).stderr
    assert "the question is empty" in loadstone(hostile, "history", " ", code=2).stderr
    (hostile / "logs").mkdir()
    (hostile / "logs/week.log").touch()
    assert "one by one, such as logs/week.log" in loadstone(hostile, "show", "logs", code=1).stderr


def test_names_are_no_markup_and_no_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = Question("Is [/dev/sda] [red]fast :x:?", "x", metrics=("throughput",))
    result = Folder.create_folder(tmp_path / "made/1", "[/b] :x:", question, interleaved=True)
    for name in ("[/foo]", ":x:"):
        result.append_trial(trial(f"t{name}", {"x": name, "[/y]": 1}, 1000.0))
    for run, arguments in ((list_all, ["--results", str(tmp_path)]), (show, [str(result.path)])):
        assert run(arguments) == 0
        output = " ".join(capsys.readouterr().out.split())
        assert question.text in output
        assert all(name in output for name in (("[/b] :x:",) if run is list_all else ("[/foo]", " :x: ", "[/y]")))


def test_binary_junk_does_not_hide_the_results(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "experiment.yaml").write_bytes(b"question: \xff")
    assert Folder(path).load_results().experiment == "question: \ufffd"


def test_without_a_figure_nothing_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(tmp_path)
    (path / "values.jsonl").unlink()
    (path / "plan.jsonl").unlink()
    assert check([str(path)]) == 1
    assert "there are no trials" in capsys.readouterr().out
    assert judge_results(ResultSet("none", [TrialResult("t", {}, 1, {})])).verdict == Verdict.INVALID


def test_untrusted_answer_of_a_single_figure_has_warning() -> None:
    results = experiment(facts(file_system="tmpfs"))
    single_side = replace(results, trials=[trial for trial in results.trials if trial.config["system"] == "lmdb"])
    assert judge_results(single_side).answer.endswith(", n=6)")
    claimed = replace(single_side, question=asking(claims="device"))
    assert judge_results(claimed).answer.endswith(", n=6, invalid)")


def test_sides_with_other_clients_are_no_valid_comparison() -> None:
    rates = [1000.0 + number for number in range(7)]
    one_client, eight = (
        matrix({(name,): [factor * number for number in rates]}, ("variant",), name=name)
        for name, factor in (("old", 1), ("new", 8))
    )
    sets = [
        replace(number, trials=[replace(trial, clients=clients) for trial in number.trials])
        for number, clients in ((one_client, 1), (eight, 8))
    ]
    judgement = judge_results(join_results(sets))
    assert [number.verdict for number in judgement.comparisons] == [Verdict.SUSPECT] * len(judgement.comparisons)
    assert "old and new differ in number of clients (1 against 8)" in [number.message for number in judgement.findings]
    alike = judge_results(join_results([one_client, eight])).findings
    assert not any("number of clients (" in number.message for number in alike)


def test_omitted_dimension_is_named_even_without_pooling() -> None:
    rates: dict[tuple[Scalar, ...], list[float]] = {("a", 1): [1.0] * 6, ("b", 8): [8.0] * 6}
    results = matrix(rates, ("system", "size"), planned={"gone": {"system": "a", "size": 1}})
    left = project_results(results, Projection(row=(), col=("system",))).results
    assert left.warnings == (
        "omitted size: variants also differ in omitted dimensions, which may cause the difference",
    )
    assert left.planned == {}
    retained = project_results(results, Projection()).results
    assert (retained.warnings, retained.planned) == ((), {"gone": {"size": 1, "system": "a"}})


def test_json_has_no_infinity_and_no_nan(tmp_path: Path) -> None:
    rows = [
        f"{name},{repeat},4,throughput,op/s,{value},\n"
        for name, value in (("a", 0), ("b", 1e308))
        for repeat in range(1, 8)
    ]
    (tmp_path / "zero.csv").write_text(CSV + "".join(rows))
    text = loadstone(tmp_path, "show", "zero.csv", "--json").stdout
    document = json.loads(text, parse_constant=pytest.fail)
    assert document["comparisons"][0]["ratio"] is None
    assert [cell["value"] for cell in document["cells"]] == [0, 1e308]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,1,4,throughput,GB/s,1e305,", "throughput is too large in B/s (bad.csv:2)"),
        (f"a,1,{'9' * 5000},throughput,op/s,1,", "clients must be a whole number of at least 1, got"),
        (f"a,1,4,read.p99,ms,1,{'9' * 30}", "n must be a whole number of at least 0, got"),
        (f"{'a' * 200_000},1,4,read.p99,ms,1,", "the row is not valid CSV: field larger than field limit"),
    ],
    ids=["value", "clients", "n", "cell"],
)
def test_a_table_beyond_all_numbers_is_refused(tmp_path: Path, row: str, message: str, capsys: Any) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(f"{CSV}{row}\n")
    assert show([str(file)]) == 1
    assert message in capsys.readouterr().err


def test_duplicate_or_non_file_imports_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(f"{CSV}a,1,4,throughput,op/s,1,\n")
    subprocess.run(["mkfifo", tmp_path / "pipe"], check=True)
    for arguments, message in (
        (["one.csv", "./one.csv"], "one.csv is named twice"),
        (["pipe"], "pipe is not a file"),
        (["."], "cannot read .: Is a directory"),
    ):
        assert message in loadstone(tmp_path, "import", *arguments, code=1, timeout=20).stderr


@pytest.mark.parametrize("nested", ["(" * 5000 + "a:b" + ")" * 5000, "-" * 5000 + "a:b"], ids=["parentheses", "minus"])
def test_a_filter_may_not_be_nested_without_end(nested: str) -> None:
    with pytest.raises(LoadstoneError, match="it is nested too deeply"):
        parse_filter(nested)
    assert parse_filter("-((a:b) (-a:c))")({"a": "c"})


def test_a_closed_output_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(f"{CSV}a,1,4,throughput,op/s,1,\n")
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command("show", "one.csv")],
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
