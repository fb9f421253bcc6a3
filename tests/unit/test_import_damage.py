"""Damaged and foreign files: one error with the problem, the place and the next step."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from imports_support import (
    ENDLESS,
    FIXTURES,
    OUTPUTS,
    WITHOUT_END,
    YCSB,
    figures,
    format_of,
    read_single,
    read_whole,
    refusal,
    try_read,
    write_file,
)
from loadstone.importers.read import FORMATS, read_file
from loadstone.results.trial_result import TrialResult

RUN = (YCSB / "run_a.out").read_text()
STATUS = "2026-11-21 09:30:06:491 1 sec: 110 operations; \n"


def is_refused(path: Path) -> bool:
    """Whether a file is refused with a message and a hint; any other exception fails the test."""
    return try_read(path) is None


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.log") == (
        f"error: cannot read {tmp_path / 'gone.log'}: No such file or directory\nhint: name a file with results"
    )
    assert "Is a directory" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert refusal(write_file(tmp_path, content)).startswith("error: bench.log is empty\nhint: ")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    assert refusal(write_file(tmp_path, b"\x7fELF\0\0" + RUN.encode())) == (
        "error: bench.log is a binary file, not a log\n"
        "hint: unpack it if it is compressed; `loadstone import` reads text, JSON, CSV and .hlog"
    )


def test_foreign_file_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    assert refusal(write_file(tmp_path, "Running 10s test @ http://localhost/\n")) == (
        "error: the format of bench.log is unknown\n"
        f"hint: known formats: {', '.join(format_.TITLE for name, format_ in FORMATS.items() if name != 'json')}; "
        "for JSON from other tools, state paths: loadstone import --json"
    )


# A line of 20 MB, which is read in the same way as a line of 200 MB.
GARBAGE = "x" * 20_000_000


@pytest.mark.parametrize(
    "start", ["", "{", '{"metric" : "OVERALL", "', '{"fio version" : "', "[OVERALL], ", "metric,unit,value,"]
)
def test_a_line_of_garbage_is_refused(tmp_path: Path, start: str) -> None:
    assert is_refused(write_file(tmp_path, start + GARBAGE))


# A quadratic search for signs of a format would take minutes or hours for each of these texts.
@pytest.mark.parametrize("text", ["1" * 200_000, "-" * 200_000, "a: " * 60_000, "\n" * 500_000], ids="1-a\n")
def test_long_foreign_text_is_refused(tmp_path: Path, text: str) -> None:
    assert "the format of bench.log is unknown" in refusal(write_file(tmp_path, f"{text}.\n"))


def test_garbage_line_within_a_log_is_skipped(tmp_path: Path) -> None:
    head, overall, rest = RUN.partition("[OVERALL]")
    run = read_single(write_file(tmp_path, f"{head}{GARBAGE}\n{overall}{rest}"))
    assert run.result.values == read_single(YCSB / "run_a.out").result.values


def test_json_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    assert is_refused(write_file(tmp_path, '{"fio version" : ' + "[" * 1_000_000))


# Truncated logs.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STATUS, "has no report"),
        (RUN.partition("[OVERALL], Throughput")[0], "its report has no Throughput(ops/sec) (bench.log:1)"),
        (RUN.partition("[READ]")[0], "the report's lines cover only 0 of 600 operations (bench.log:1)"),
        (RUN.partition("[READ], Max")[0], "is truncated within the lines of [READ] (bench.log:1)"),
        (RUN.partition("[UPDATE]")[0], "the report's lines cover only 304 of 600 operations (bench.log:1)"),
        (RUN[: RUN.index("[UPDATE], 95th") + 19], 'within its last line: "[UPDATE], 95thPerce" (bench.log:29)'),
        (RUN[: RUN.index("[UPDATE], 99th") + 38], "within its last line"),
        (RUN.rstrip("\n")[:-1], "is truncated within the lines of [UPDATE] (bench.log:31)"),
        (RUN.replace("1339.2857142857142", "13x"), "[OVERALL], Throughput(ops/sec) is not a number: 13x (bench.log:2)"),
        (RUN.partition("[UPDATE]")[0] + RUN.partition("[CLEANUP]")[0][-60:], "twice"),
        (f"{STATUS}{RUN}{STATUS}", "the last run of the YCSB log has status lines but no report"),
    ],
)  # fmt: skip
def test_truncated_ycsb_log_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    output = refusal(write_file(tmp_path, text))
    assert message in output
    assert output.count("\n") == 1


def test_a_part_is_imported_when_that_is_said(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN.partition("[UPDATE]")[0])
    run = read_single(path, partial=True)
    assert figures(run, "read.p99") == {"read.p99": (7_527_000, "ns", 304)}
    assert [note.name for note in run.result.notes] == ["partial"]
    # The mean of all operations would lack the updates.
    assert "all.mean" not in run.result.values


@pytest.mark.parametrize(
    ("name", "end", "message"),
    [
        ("cassandra-stress-read.txt", "Results:", "the cassandra-stress log is truncated: it has no results"),
        ("cassandra-stress-read.txt", "Latency max", 'it has no "latency max"'),
        ("cassandra-stress-read.txt", "Total operation time", 'it has no "total operation time"'),
        ("testdfsio-read.txt", "2026-11-21 09:41:53,914 INFO fs.TestDFSIO: -----", "is truncated: it has no result"),
        ("TestDFSIO_results.log", "  IO rate std", 'it has no "IO rate std deviation" (TestDFSIO_results.log:1)'),
        ("hbase-pe-randomRead.txt", "2026-11-21T09:51:05,701", "the log ends before the test randomread"),
        ("hbase-pe-randomRead.txt", '"presplitRegions"', "the options of the test are truncated"),
        ("go-ycsb.txt", "Run finished", "the go-ycsb log is truncated: no report follows `Run finished`"),
        ("go-ycsb-json.txt", '"Takes(s)":"2.0"}]', "a row of the go-ycsb report is truncated or damaged"),
        ("fio-mixed.json", '"disk_util"', "the fio report is truncated or damaged"),
        ("../ycsb/json.txt", '"value" : 50559', "the YCSB JSON report is truncated or damaged"),
    ],
)
def test_other_cut_logs_are_refused_with_their_place(tmp_path: Path, name: str, end: str, message: str) -> None:
    text = (FIXTURES / name).read_text()
    assert end in text
    assert message in refusal(write_file(tmp_path, text.partition(end)[0], Path(name).name))


def test_a_client_that_did_not_finish_is_missed(tmp_path: Path) -> None:
    lines = (FIXTURES / "hbase-pe-randomRead.txt").read_text().split("\n")
    text = "\n".join(line for line in lines if "Finished TestClient-2 in" not in line)
    assert "3 of 4 clients finished the test randomread" in refusal(write_file(tmp_path, text))


# Damage: whatever is accepted has the figures of the original, except for figures on damaged lines.

# The number of damaged files that `make soak` reads, and the number per output in other runs.
COUNT = 10_000
COUNT_OF_FILE = 10
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
SCALES = [scale * power for scale in (1, 60, 8, 1024, 1 << 20, 1 << 30) for power in (1, 1e-2, 1e3, 1e6, 1e9)]
# Lines with totals; if a digit of a total is wrong, other lines contradict it.
TOTALS = {
    "cassandra-stress": r"(?i)^(op rate|total partitions|total operation time) *:",
    "fio-normal": r"^ +(read|write) *:|issued",
    "go-ycsb": r"^TOTAL +- .*|^\| TOTAL ",
    "hbase-pe": r"Summary of timings",
    "hyperfine": r'"(mean|median|min|max)"',
    "memtier": r"^Totals|\"Total duration\"",
    "pgbench": r"^tps = .*(without|excluding)|actually processed",
    "redis-benchmark": r"requests completed in|throughput summary|^[\d.]+ requests per second",
    "scylla-bench": r"^(Time \(avg\)|Total ops|Operations/s):",
    "sysbench": r"total time:|time elapsed|total number of events|transactions:",
    "ycsb": r"^\[OVERALL\]",
    "ycsb-cpp": r"(runtime|operations|throughput)\(",
}
# A wrong digit that changes a total by less than this share is within the slack of the checks.
SLACK = 0.06
# pgbench exits when its last transactions complete, which may be later than its duration.
LATE_NS = 1e9
# Figures that are computed from several lines.
DERIVED = re.compile(
    r"throughput|runtime|operations|errors|returned|stored|moved|.*\.(throughput|count|bandwidth|mean)|all\..*"
)


@dataclass(frozen=True)
class Damaged:
    """A damaged file: the kind of damage, the file's bytes, and the text of the damaged lines."""

    kind: str
    data: bytes
    touched: str = ""
    # The file whose lines were mixed into this file.
    other: Path | None = None


def damage_lines(kind: str, lines: list[bytes], dice: random.Random) -> Damaged:
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    until = min(at + dice.choice((1, 1, 2, 5)), len(lines))
    touched = lines[at:until]
    match kind:
        case "drop":
            changed = lines[:at] + lines[until:]
        case "repeat":
            changed = lines[:until] + lines[at:]
        case "swap":
            changed = list(lines)
            changed[at], changed[other] = lines[other], lines[at]
            touched = [lines[at], lines[other]]
        case "shorten":
            # The loss of digits within a number cannot be detected; the loss of words can.
            cells = lines[at].split(b" ")
            changed = [*lines[:at], b" ".join(cells[: dice.randrange(len(cells) + 1)]), *lines[at + 1 :]]
        case _:
            changed = list(lines)
            changed[at] = change_number(kind, lines[at], dice)
            touched = [lines[at], changed[at]]
    return Damaged(kind, b"\n".join(changed), b"\n".join(touched).decode(errors="replace"))


def change_number(kind: str, line: bytes, dice: random.Random) -> bytes:
    """A line with one digit changed, or with another locale's separators."""
    numbers = list(re.finditer(rb"\d+(\.\d+)?", line))
    if not numbers:
        return line
    number = dice.choice(numbers)
    if kind == "digit":
        at = dice.randrange(number.start(), number.end())
        digit = str(dice.randrange(10)).encode()
        return line[:at] + digit + line[at + 1 :] if line[at : at + 1].isdigit() else line
    whole, point, fraction = number[0].partition(b".")
    comma = (
        f"{int(whole):,}".encode() + point + fraction
        if kind == "grouped"
        else whole + point.replace(b".", b",") + fraction
    )
    return line[: number.start()] + comma + line[number.end() :]


def change_total(path: Path, data: bytes, dice: random.Random) -> Damaged:
    """A file with a changed first digit in one of its totals."""
    lines = data.decode(errors="replace").split("\n")
    pattern = TOTALS.get(format_of(path), "$^")
    totals = [index for index, line in enumerate(lines) if re.search(pattern, line)]
    if not totals:
        return Damaged("total", data)
    at = dice.choice(totals)
    # Numbers in names, such as 99th, are not changed.
    numbers = [number for number in re.finditer(r"(?<![\w.,:])[1-9][\d.,:]*(?!\w*th)", lines[at]) if number[0] != "0"]
    if numbers:
        start = dice.choice(numbers).start()
        digit = str(dice.choice([digit for digit in range(1, 10) if str(digit) != lines[at][start]]))
        lines[at] = lines[at][:start] + digit + lines[at][start + 1 :]
    return Damaged("total", "\n".join(lines).encode(), lines[at])


def interleave_files(path: Path, data: bytes, dice: random.Random) -> Damaged:
    """The lines of a file, alternating with the lines of another file of its format."""
    name = format_of(path)
    other = dice.choice([known for known in OUTPUTS if name == format_of(known)])
    sides = [data.split(b"\n"), other.read_bytes().split(b"\n")]
    run = dice.choice((1, 3, 10))
    mixed: list[bytes] = []
    while any(sides):
        for side in sides:
            mixed += side[:run]
            del side[:run]
    return Damaged("interleave", b"\n".join(mixed), other=other)


LINE_KINDS = ("drop", "repeat", "swap", "shorten", "digit", "grouped", "comma")


def damage_file(kind: str, path: Path, data: bytes, dice: random.Random) -> Damaged:
    """A file with this kind of damage."""
    if kind == "total":
        return change_total(path, data, dice)
    if kind == "interleave":
        return interleave_files(path, data, dice)
    if kind in LINE_KINDS:
        return damage_lines(kind, data.split(b"\n"), dice)
    at = dice.randrange(len(data))
    match kind:
        case "cut":
            return Damaged(kind, data[:at])
        case "end":
            # Whole lines are lost, so that no number is truncated.
            rest = data.rstrip(b"\n").split(b"\n")[: -dice.choice((1, 1, 2, 3))]
            return Damaged(kind, b"\n".join(rest) + b"\n")
        case "noise":
            noise = bytes(dice.randrange(1, 256) for _ in range(dice.choice((1, 4, 40))))
            end = data.find(b"\n", at + len(noise))
            lines = slice(data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data))
            changed = data[:at] + noise + data[at + len(noise) :]
            return Damaged(kind, changed, (data[lines] + b"\n" + changed[lines]).decode(errors="replace"))
        case "nul":
            return Damaged(kind, data[:at] + b"\0" + data[at:], "")
        case "crlf":
            return Damaged(kind, data.replace(b"\n", b"\r\n"))
        case "mark":
            return Damaged(kind, b"\xef\xbb\xbf" + data)
        case "utf-16":
            return Damaged(kind, data.decode(errors="replace").encode("utf-16"))
        case "twice":
            return Damaged(kind, data.rstrip(b"\n") + b"\n\n" + data)
        case _:
            cut = data[:at].rpartition(b"\n")[0]
            return Damaged("cut-and-whole", cut + b"\n" + data)


# Damage after which a file must have every figure.
HARMLESS = ("crlf", "mark", "utf-16")
# Damage that may change the figures of the lines it touches; another locale's separators may not.
TOUCHING = ("swap", "digit", "noise")
KINDS = (*LINE_KINDS, "total", "end", "interleave", "cut", "noise", "nul", "twice", "cut-and-whole")


def is_printed(value: float, text: str) -> bool:
    """Whether the text contains the figure, in any unit."""
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(text) if number.count(".") < 2]
    return any(abs(number * scale - value) <= 1e-6 * abs(value) for number in numbers for scale in SCALES)


def list_differences(result: TrialResult, whole: TrialResult, touched: str, has_facts: bool) -> Iterator[str]:
    """The figures and facts that differ, and are neither in a touched line nor computed from such a line.

    A run without printed settings may get the other file's settings in a mixed file: facts are then unknown.
    """
    for name, value in result.values.items():
        known = whole.values.get(name)
        if known and abs(value.value - known.value) <= value.resolution + known.resolution:
            continue
        label = re.search(r"\.p([\d.]+)$", name)
        numbers = [value.value, *([known.value] if known else []), *([float(label[1])] if label else [])]
        if not touched or not (DERIVED.fullmatch(name) or any(is_printed(number, touched) for number in numbers)):
            yield f"{name}: {value.value}, not {known.value if known else None}"
    if not touched and has_facts:
        for fact, unknown in (("clients", None), ("loop", "closed"), ("end", "done")):
            if getattr(result, fact) not in (getattr(whole, fact), unknown):
                yield f"{fact}: {getattr(result, fact)}, not {getattr(whole, fact)}"
        # The operations may have lost their names.
        totals = [sum(sum(counts.values()) for counts in run.statuses.values()) for run in (result, whole)]
        if result.statuses and totals[0] != totals[1]:
            yield f"statuses: {result.statuses}, not {whole.statuses}"


def total_changes(result: TrialResult, whole: TrialResult) -> Iterator[str]:
    """The totals that differ by more than the checks allow."""
    for name in ("throughput", "operations", "runtime"):
        value, known = result.value(name), whole.value(name)
        # Redis prints hundredths of seconds.
        time = whole.values.get("runtime")
        late = LATE_NS if whole.facts.get("tool") == "pgbench" else 0
        slack = SLACK + ((time.resolution + late) / time.value if time and time.value else 0)
        if value is not None and known is not None and abs(value - known) > slack * known:
            yield f"{name}: {value}, not {known}"


def read_damaged(damaged: Damaged, path: Path, folder: Path) -> str:
    """The outcome of a damaged file, such as `refused`, `same` or `less`. Fails the test for a wrong figure."""
    file = write_file(folder, damaged.data, path.name)
    if damaged.kind not in HARMLESS and is_refused(file):
        return "refused"
    runs = [imported.result for imported in read_file(file, {})]
    whole = [imported.result for known in (path, damaged.other) if known for imported in read_whole(known)]
    is_same = [run.values for run in runs] in ([run.values for run in group] for group in (whole, [*whole, *whole]))
    assert is_same or damaged.kind not in HARMLESS
    if is_same:
        return "same"
    if format_of(path) in ENDLESS or path.name in WITHOUT_END:
        return "no end mark"
    if damaged.kind == "total":
        for run, original in zip(runs, whole, strict=True):
            changes = list(total_changes(run, original))
            assert not changes, (path.name, damaged.touched, changes)
        return "total"
    touched = damaged.touched if damaged.kind in TOUCHING else ""
    for run in runs:
        wrong = [list(list_differences(run, original, touched, damaged.other is None)) for original in whole]
        assert [] in wrong, (path.name, damaged.kind, damaged.touched[:300], min(wrong, key=len)[:5])
    return "touched" if touched else "less"


def damage_all(path: Path, folder: Path, count: int, seed: str) -> Counter[str]:
    """Counts the outcomes for damaged copies of a file, with every kind of damage in turn."""
    data, dice = path.read_bytes(), random.Random(f"{seed}{path.name}")
    kinds = [*HARMLESS, *(KINDS[number % len(KINDS)] for number in range(count - len(HARMLESS)))]
    if count < len(KINDS):
        kinds = dice.sample([*HARMLESS, *KINDS], count)
    return Counter(read_damaged(damage_file(kind, path, data, dice), path, folder) for kind in kinds)


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_damage_changes_no_figure_silently(path: Path, tmp_path: Path) -> None:
    assert sum(damage_all(path, tmp_path, COUNT_OF_FILE, "").values()) == COUNT_OF_FILE


@pytest.mark.soak
@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_ten_thousand_damaged_files_are_safe(path: Path, tmp_path: Path) -> None:
    count = COUNT // len(OUTPUTS) + 1
    assert sum(damage_all(path, tmp_path, count, os.environ.get("LOADSTONE_SEED", "soak")).values()) == count


# JSON from any tool: with several documents, as with any list, lost lines and swapped lines cannot be detected.
ANY_TOOL = "".join(
    f"""{{
 "requests": {number}000,
 "latency": {{
  "mean": {number}.25,
  "p99": "{number}7.5"
 }},
 "rates": [{{"per second": {number}50.5}}]
}}
"""
    for number in (1, 2, 3)
)
PATHS = (
    "throughput=$.rates[0]['per second'] op/s\nall.mean=$.latency.mean ms\nall.p99=$.latency.p99 ms\n"
    "operations=$.requests op"
)
OF_ANY_TOOL = ("digit", "grouped", "comma", "shorten", "cut", "noise", "nul", "twice", "cut-and-whole", *HARMLESS)


@pytest.mark.parametrize(
    "count", [len(OF_ANY_TOOL) * 4, pytest.param(len(OF_ANY_TOOL) * 100, marks=pytest.mark.soak)], ids=["few", "soak"]
)
def test_damaged_json_of_any_tool_is_safe(count: int, tmp_path: Path) -> None:
    dice = random.Random(f"{os.environ.get('LOADSTONE_SEED', 'soak')}json")
    path = write_file(tmp_path, ANY_TOOL, "whole.json")
    known = [run.result.values for run in read_file(path, {"json": PATHS})]
    for number in range(count):
        damaged = damage_file(OF_ANY_TOOL[number % len(OF_ANY_TOOL)], path, ANY_TOOL.encode(), dice)
        runs = try_read(write_file(tmp_path, damaged.data, "bench.json"), {"json": PATHS})
        for run in runs or ():
            same = any(run.result.values == values for values in known)
            touched = [
                str(value.value) for value in run.result.values.values() if is_printed(value.value, damaged.touched)
            ]
            assert same or (damaged.kind in TOUCHING and touched), (damaged.kind, damaged.touched, run.result.values)
        assert runs or damaged.kind not in HARMLESS
