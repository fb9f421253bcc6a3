"""Logs from programs that collect output: prefixes, encodings and indentation are removed."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from imports_support import FIXTURES, OUTPUTS, read_whole, refusal, write_file
from loadstone.importers.read import read_file

PREFIXES: dict[str, Callable[[int], str]] = {
    "compose": lambda number: "stress_1  | ",
    "kubernetes": lambda number: f"2026-11-26T04:05:{number % 60:02d}.123456789Z stdout F ",
    "docker": lambda number: f"2026-11-26T04:05:{number % 60:02d}.123456789Z ",
    "kubectl": lambda number: "[pod/stress-7d9/stress] ",
    "syslog": lambda number: f"Nov 26 04:05:{number % 60:02d} host stress[123]: ",
    "quoted": lambda number: "> ",
}
# Prefixes that are tried on every sixth output only.
MORE_PREFIXES: dict[str, Callable[[int], str]] = {
    "jenkins": lambda number: f"[2026-11-26T04:05:{number % 60:02d}.123Z] ",
    "avocado": lambda number: f"04:05:{number % 60:02d} DEBUG| [stdout] ",
    "ts": lambda number: f"Nov 26 04:05:{number % 60:02d} ",
    "pdsh": lambda number: "node1: ",
    "indented": lambda number: " " * 6,
    "journald": lambda number: f"2026-11-26T04:05:{number % 60:02d}+0000 host stress[123]: ",
    "cloudwatch": lambda number: f"2026-11-26T04:05:{number % 60:02d}.123000+00:00 stress/stress/0a1b ",
    "kubectl with times": lambda number: f"[pod/a/b] 2026-11-26T04:05:{number % 60:02d}.123456789Z ",
    "ts with dates": lambda number: f"2026-11-26 04:05:{number % 60:02d} ",
    "ts from the start": lambda number: f"00:00:{number % 60:02d} ",
    "parallel": lambda number: "node1\t",
    "cat -n": lambda number: f"{number + 1:6d}\t",
    "grep -n": lambda number: f"{number + 1}:",
    "fio --client": lambda number: "<host1> ",
    "mpirun --tag-output": lambda number: "[1,0]<stdout>:",
    "gitlab": lambda number: "\x1b[0K",
    "titles": lambda number: "\x1b]0;bench\x07\x1b(B",
}
# Prefixes for which there is no rule. A prefix is recognised if only its digits differ between the lines.
UNKNOWN_PREFIXES: dict[str, Callable[[int], str]] = {
    "gitlab with times": lambda number: f"2026-11-26T04:05:{number % 60:02d}.123456Z 00O ",
    "stern": lambda number: "stress-7d9 main ",
    "airflow": lambda number: f"[2026-11-26, 04:05:{number % 60:02d} UTC] {{subprocess.py:93}} INFO - ",
    "syslog (RFC 5424)": lambda number: f"<14>1 2026-11-26T04:05:{number % 60:02d}.123Z host stress 123 - - ",
    "heroku": lambda number: f"2026-11-26T04:05:{number % 60:02d}.123456+00:00 app[run.1]: ",
    "python": lambda number: f"2026-11-26 04:05:{number % 60:02d},123 - bench - INFO - ",
    "logrus": lambda number: f"INFO[{number:04d}] ",
    "seconds": lambda number: f"{1795273060 + number}.123456 ",
    "systemd-cat": lambda number: "stress[123]: ",
    "commented": lambda number: "# ",
    "log levels": lambda number: f"{('INFO', 'WARN', 'ERROR')[number % 3]} bench: ",
}
# Encodings of terminals, editors, pages and mails.
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "colours": lambda text: "".join(f"\x1b[32m{line}\x1b[m\n" for line in text.rstrip("\n").split("\n")).encode(),
    "a mark within": lambda text: f"some text\n\ufeff{text}".encode(),
    "UTF-16LE without a mark": lambda text: text.encode("utf-16-le"),
    "UTF-16BE without a mark": lambda text: text.replace("\n", "\r\n").encode("utf-16-be"),
    "carriage returns": lambda text: text.replace("\n", "\r").encode(),
    "UTF-16BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "blanks at ends": lambda text: text.replace("\n", "   \n").encode(),
    "empty lines": lambda text: text.replace("\n", "\n\n").encode(),
    "tabs": lambda text: re.sub(" {2,}", "\t", text).encode(),
    "no-break spaces": lambda text: re.sub("(?<=[=:]) ", "\u00a0", text).encode(),
    "a page": lambda text: f"<pre>\n{html.escape(text, quote=False)}</pre>\n".encode(),
}


@pytest.mark.parametrize("collector", PREFIXES)
@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_prefixes_of_collectors_are_removed(path: Path, collector: str, tmp_path: Path) -> None:
    if path.suffix == ".md" or (path.stat().st_size > 20_000 and collector != "compose"):
        pytest.skip("a long output is read with one prefix, and Markdown has text around it")
    assert_prefix_is_removed(path, PREFIXES[collector], tmp_path)


def assert_prefix_is_removed(path: Path, prefix: Callable[[int], str], folder: Path) -> None:
    lines = path.read_text().rstrip("\n").split("\n")
    text = "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(lines))
    runs = read_file(write_file(folder, text, path.name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(path)]


@pytest.mark.parametrize("collector", MORE_PREFIXES)
@pytest.mark.parametrize("path", [path for path in OUTPUTS[::6] if path.suffix != ".md"], ids=lambda path: path.name)
def test_prefixes_of_programs_are_removed(path: Path, collector: str, tmp_path: Path) -> None:
    assert_prefix_is_removed(path, MORE_PREFIXES[collector], tmp_path)


@pytest.mark.parametrize("collector", UNKNOWN_PREFIXES)
@pytest.mark.parametrize(
    "name",
    ["pgbench-progress", "redis-benchmark", "sysbench-oltp", "memtier", "fio-normal", "scylla-bench", "../ycsb/run_a"],
)
def test_unknown_prefixes_are_named(name: str, collector: str, tmp_path: Path) -> None:
    path = FIXTURES / (f"{name}.out" if "ycsb" in name else f"{name}.txt")
    prefix = UNKNOWN_PREFIXES[collector]
    assert_prefix_is_removed(path, prefix, tmp_path)
    # A known prefix may precede the unknown one.
    last = prefix(0).split()[-1]
    for run in read_file(tmp_path / path.name, {}):
        notes = [note.message for note in run.result.notes if note.name == "unknown"]
        # The lines of YCSB and pgbench are read with any prefix.
        assert any(last in note for note in notes) or path.stem in ("run_a", "pgbench-progress")


def test_truncated_log_with_unknown_prefix_is_refused(tmp_path: Path) -> None:
    lines = (FIXTURES / "sysbench-oltp.txt").read_text().rstrip("\n").split("\n")
    text = "".join(f"stress-7d9 main {line}\n" for line in lines[:-4])
    assert "the sysbench report is truncated" in refusal(write_file(tmp_path, text))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("path", [path for path in OUTPUTS[::4] if path.suffix != ".md"], ids=lambda path: path.name)
def test_encodings_of_other_programs_are_read(path: Path, encoding: str, tmp_path: Path) -> None:
    data = ENCODINGS[encoding](path.read_text())
    runs = read_file(write_file(tmp_path, data, path.name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(path)]


@pytest.mark.parametrize("recode", [lambda text: text.encode("latin-1"), lambda text: text.replace("µ", "Âµ").encode()])
def test_microseconds_of_latin_1_are_read(recode: Callable[[str], bytes], tmp_path: Path) -> None:
    path = FIXTURES / "scylla-bench.txt"
    runs = read_file(write_file(tmp_path, recode(path.read_text())), {})
    assert runs[0].result.values == read_whole(path)[0].result.values


JSON_LOGS: dict[str, Callable[[str], object]] = {
    "docker": lambda line: {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-26T04:05:06.1Z"},
    "fluent bit": lambda line: {"stream": "stdout", "_p": "F", "log": line},
    "journald": lambda line: {"__REALTIME_TIMESTAMP": "1", "MESSAGE": line, "PRIORITY": "6"},
    "bytes of journald": lambda line: {"__CURSOR": "s=ab;i=1", "MESSAGE": list(line.encode()) or "", "_PID": "9"},
    "logrus": lambda line: {"level": "info", "msg": line, "time": "2026-11-26T04:05:06Z"},
    "logback": lambda line: {"@timestamp": "2026-11-26 04:05:06", "@version": "1", "message": line, "level": "INFO"},
    "loguru": lambda line: {"text": f"{line}\n", "record": {"level": {"name": "INFO"}, "message": "run"}},
    "promtail": lambda line: {"ts": 1795273060.5, "line": line, "labels": {"job": "bench run"}},
    "nested": lambda line: {"log": {"message": line, "level": "info"}, "kubernetes": {"pod": {"name": "a"}}},
    "cloud logging": lambda line: {"insertId": hex(hash(line)), "textPayload": line, "resource": {"type": "k8s"}},
    "unknown key": lambda line: {"at": "2026-11-26 04:05:06", "id": hex(hash(line)), "zeile": line, "n": 1},
}


@pytest.mark.parametrize("collector", JSON_LOGS)
@pytest.mark.parametrize("name", ["pgbench-progress.txt", "sysbench-oltp.txt", "fio-normal.txt"])
def test_json_logs_of_collectors_are_read(name: str, collector: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().rstrip("\n").split("\n")
    records = [json.dumps(JSON_LOGS[collector](line)) for line in lines]
    text = "".join(f"{record}\n" for record in records)
    logs = [text, f"-- Boot 0a1b --\n{text}"]
    if collector != "unknown key":
        pretty = "".join(json.dumps(json.loads(record), indent=2) + "\n" for record in records)
        nested = f'{{"took": 3, "hits": {{"total": 9, "hits": [{", ".join(records)}]}}}}'
        logs += [f"[\n{', '.join(records)}\n]\n", pretty, nested]
    for log in logs:
        runs = read_file(write_file(tmp_path, log), {})
        assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]


@pytest.mark.parametrize("name", ["pgbench-progress.txt", "sysbench-oltp.txt", "cassandra-stress-2.1.7.txt"])
def test_messages_of_logfmt_are_read(name: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().rstrip("\n").split("\n")
    text = "".join(f'time="2026-11-26T04:05:06Z" level=info msg={json.dumps(line)} n=1\n' for line in lines)
    runs = read_file(write_file(tmp_path, text), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]


@pytest.mark.parametrize("key", ["_PID", "pod_name", "container.id"])
def test_origins_in_json_stay_apart(key: str, tmp_path: Path) -> None:
    lines = (FIXTURES / "sysbench-oltp.txt").read_text().rstrip("\n").split("\n")
    outer, _, inner = key.partition(".")
    records = [{outer: {inner: origin} if inner else origin, "msg": line} for line in lines for origin in ("a", "b")]
    runs = read_file(write_file(tmp_path, "".join(json.dumps(record) + "\n" for record in records)), {})
    assert [run.result.values for run in runs] == 2 * [read_whole(FIXTURES / "sysbench-oltp.txt")[0].result.values]


def test_names_of_commands_are_not_messages(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "hyperfine.json").read_text())
    lines = [json.dumps({"results": [entry]}) for entry in document["results"]] * 4
    runs = read_file(write_file(tmp_path, "\n".join(lines) + "\n", "hyperfine.json"), {})
    assert len(runs) == 4 * len(read_whole(FIXTURES / "hyperfine.json"))
    document["results"] = [{**document["results"][0], "command": f"sleep {word}"} for word in "abcdefgh"]
    for indent in (None, 2):
        path = write_file(tmp_path, json.dumps(document, indent=indent), "hyperfine.json")
        assert len({run.result.config["variant"] for run in read_file(path, {})}) == 8


@pytest.mark.parametrize("name", ["pgbench-progress.txt", "sysbench-oltp.txt", "hyperfine.json"])
def test_output_in_a_string_is_read(name: str, tmp_path: Path) -> None:
    text = f'ok: [client1] => {{\n    "out.stdout": {json.dumps((FIXTURES / name).read_text())}\n}}\n'
    runs = read_file(write_file(tmp_path, text, name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]
    output = (FIXTURES / name).read_text()
    fields = {"rc": 0, "stdout": output, "stderr": "warning: no room\n" * (len(output) // 50)}
    for indent in (None, 4):
        runs = read_file(write_file(tmp_path, json.dumps(fields, indent=indent), name), {})
        assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]


@pytest.mark.parametrize("name", ["redis-benchmark.txt", "fio-normal.txt", "cassandra-stress-2.1.txt", "memtier.txt"])
def test_indented_blocks_of_markdown_are_read(name: str, tmp_path: Path) -> None:
    block = "".join(f"    {line}\n" if line else "\n" for line in (FIXTURES / name).read_text().split("\n"))
    runs = read_file(write_file(tmp_path, f"# Results\n\nThe output:\n\n{block}\nThat was all.\n", "a.md"), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]


@pytest.mark.parametrize("name", ["ycsb-0.3.txt", "sysbench-oltp.txt", "redis-benchmark.txt"])
def test_lists_of_quoted_lines_are_read(name: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().rstrip("\n").split("\n")
    quoted = ",\n".join(f"        {json.dumps(line)}" for line in lines)
    text = f'ok: [client1] => {{\n    "out.stdout_lines": [\n{quoted}\n    ]\n}}\n'
    runs = read_file(write_file(tmp_path, text, name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_file(FIXTURES / name, {})]


@pytest.mark.parametrize("prefixes", [("web-7d9 main ", "db-8e1f main "), ("web ", "db ")], ids=["stern", "one word"])
@pytest.mark.parametrize("name", ["redis-benchmark", "sysbench-oltp", "pgbench-progress", "memtier"])
def test_unknown_origins_of_lines_stay_apart(name: str, prefixes: tuple[str, str], tmp_path: Path) -> None:
    lines = (FIXTURES / f"{name}.txt").read_text().rstrip("\n").split("\n")
    text = "".join(f"{prefix}{line}\n" for line in lines for prefix in prefixes)
    runs = [run.result.values for run in read_file(write_file(tmp_path, text), {})]
    whole = [run.result.values for run in read_whole(FIXTURES / f"{name}.txt")]
    assert runs == [*whole, *whole]


def test_containers_of_one_log_stay_apart(tmp_path: Path) -> None:
    slow, fast = ((FIXTURES / name).read_text().split("\n") for name in ("pgbench-progress.txt", "pgbench-rate.txt"))
    lines = [f"slow_1 | {line}" for line in slow] + [f"fast_1 | {line}" for line in fast]
    order = sorted(range(len(lines)), key=lambda index: (index % len(slow), index))
    runs = read_file(write_file(tmp_path, "\n".join(lines[index] for index in order) + "\n"), {})
    assert [run.result.value("throughput") for run in runs] == [341.554499, 104.122467]
