"""Figures from any tool, by patterns and JSON paths: whole numbers in the stated unit, or one clear refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from imports_support import refusal, write_file
from loadstone.errors import LoadstoneError
from loadstone.importers.json_paths import NAME, parse_figure
from loadstone.importers.patterns import read_figures
from loadstone.importers.read import read_file
from loadstone.importers.source import text_of

TPS = "tps = ([0-9.]+)"
P99 = "p99 = ([0-9.]+)"


@pytest.mark.parametrize(
    ("text", "pattern", "unit", "value", "step"),
    [
        ("tps = 123.45\n", TPS, "op/s", 123.45, 0.01),
        ("tps = 123.45\r\nend\r\n", f"{TPS}$", "op/s", 123.45, 0.01),
        ("\x1b[32mtps = \x1b[1m123\x1b[0m\n", TPS, "op/s", 123, 1),
        ("tps = 1\rtps = 2\rtps = 3\n", f"^{TPS}", "op/s", 3, 1),
        ("tps = 1.5e3\n", "tps = ([0-9.e]+)", "op/s", 1500, 0),
        ("tps = 12.\n", "tps = ([0-9]+)", "op/s", 12, 1),
        ("hits: 5 %\n", "hits: (-?[0-9]+)", "%", 0.05, 0.01),
        ("p99,95,120\n", "p99,([0-9]+),", "us", 95_000, 1000),
        ("p99 = 1.5 ms (1500 us)\n", P99, "ms", 1.5e6, 0.1e6),
        ("p99 = 1.5ms\n", P99, "ms", 1.5e6, 0.1e6),
        ("p99 = 15 minutes\n", P99, "s", 15e9, 1e9),
        ("bw = 12 MB/s\n", "bw = ([0-9]+)", "MiB/s", 12 * (1 << 20), 1 << 20),
        ("tps = 12.5k\n", TPS, "kop/s", 12_500, 100),
        ("p99 \ufffd = 7 \ufffds\n", "p99 . = ([0-9]+)", "us", 7000, 1000),
        ("run 1\ntps = 7\n", "(?<=tps = )[0-9]+", "op/s", 7, 1),
    ],
)
def test_patterns_read_whole_numbers(
    text: str, pattern: str, unit: str, value: float, step: float, tmp_path: Path
) -> None:
    (figure,) = read_figures(text_of(write_file(tmp_path, text)), {"x.p99": (pattern, unit)}).values
    assert (figure.value, figure.resolution) == pytest.approx((value, step))


@pytest.mark.parametrize(
    ("text", "pattern", "unit", "message"),
    [
        ("tps = 1,234.5", "tps = ([0-9]+)", "op/s", 'only part of a number: "1"'),
        ("tps = 1,234.5", "tps = ([0-9,.]+)", "op/s", 'not a number: "1,234.5"'),
        ("tps = 1'234", "tps = ([0-9.]+)", "op/s", 'only part of a number: "1"'),
        ("tps = 1\u202f234", "tps = ([0-9.]+)", "op/s", 'only part of a number: "1"'),
        ("tps = 12,5", "tps = ([0-9]+)", "op/s", 'only part of a number: "12"'),
        ("tps = 123.45", r"tps = [0-9]+(\.[0-9]+)?", "op/s", 'only part of a number: ".45"'),
        ("tps = 123", r"tps = [0-9]+(\.[0-9]+)?", "op/s", "the group in the pattern for x matches nothing"),
        ("tps = 1.5e3", TPS, "op/s", 'only part of a number: "1.5"'),
        ("tps = 123456", "([0-9]{3})$", "op/s", 'only part of a number: "456"'),
        ("tps = -5", "tps = -?([0-9]+)", "op/s", 'only part of a number: "5"'),
        ("tps = -5", "([0-9]+)", "op/s", 'only part of a number: "5"'),
        ("tps = -5", "tps = (-?[0-9]+)", "op/s", "x is negative: -5"),
        ("tps = nan", r"tps = (\S+)", "op/s", 'x is not a number: "nan"'),
        ("tps = inf", r"tps = (\S+)", "op/s", 'x is not a number: "inf"'),
        ("tps = 1e999", r"tps = (\S+)", "op/s", 'x is not a number: "1e999"'),
        ("tps = ", "tps = ([0-9.]*)", "op/s", 'x is not a number: ""'),
        ("p99 = 850us", P99, "ms", 'x is printed in "us", but the experiment states ms'),
        ("p99 = 1.2 s", P99, "ms", 'x is printed in "s"'),
        ("p99 = 2m", P99, "s", 'x is printed in "m"'),
        ("tps = 12.5k", TPS, "op/s", 'x is printed in "k"'),
        ("tps = 12.5 kop/s", TPS, "op/s", 'x is printed in "kop/s"'),
        ("bw = 12 KiB/s", "bw = ([0-9]+)", "MiB/s", 'x is printed in "KiB/s"'),
        ("miss = 5%", "miss = ([0-9]+)", "share", 'x is printed in "%"'),
        ("tps = 1\ntps = 2", TPS, "op/s", "the pattern for x has 2 matches"),
        ("qps = 1", TPS, "op/s", "the pattern for x has no match"),
    ],
)
def test_parts_of_numbers_are_refused(text: str, pattern: str, unit: str, message: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        read_figures(text, {"x": (pattern, unit)})
    assert message in str(caught.value.args[0])
    assert caught.value.hint


def figures_of(folder: Path, text: str | bytes, *paths: str) -> list[dict[str, tuple[float, float]]]:
    """The value and resolution of each run's figures by path."""
    runs = read_file(write_file(folder, text, "tool.json"), {"json": "\n".join(paths)}, NAME)
    return [{name: (value.value, value.resolution) for name, value in run.result.values.items()} for run in runs]


TPS_PATH, P99_PATH = "throughput=$.tps op/s", "all.p99=$.lat.p99 ms"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tps": 1234.5, "lat": {"p99": 0.1}}', {"throughput": (1234.5, 0.1), "all.p99": (1e5, 1e5)}),
        ('{"tps": 1234, "lat": {"p99": 5}}', {"throughput": (1234, 1), "all.p99": (5e6, 1e6)}),
        ('{"tps": "1234.50", "lat": {"p99": " 5.0 "}}', {"throughput": (1234.5, 0.01), "all.p99": (5e6, 1e5)}),
        ('{"tps": 1.2e3, "lat": {"p99": 5e-1}}', {"throughput": (1200, 0), "all.p99": (5e5, 0)}),
        ('\ufeff{\r\n"tps": 1,\r\n"lat": {"p99": 2}}\r\n', {"throughput": (1, 1), "all.p99": (2e6, 1e6)}),
        ('Starting …\n{"tps": 1, "lat": {"p99": 2}}\nDone.\n', {"throughput": (1, 1), "all.p99": (2e6, 1e6)}),
        (b'{"host": "caf\xe9", "tps": 1, "lat": {"p99": 2}}', {"throughput": (1, 1), "all.p99": (2e6, 1e6)}),
    ],
)
def test_paths_read_printed_numbers(
    text: str | bytes, expected: dict[str, tuple[float, float]], tmp_path: Path
) -> None:
    (known,) = figures_of(tmp_path, text, TPS_PATH, P99_PATH)
    assert known == {name: pytest.approx(pair) for name, pair in expected.items()}


def test_json_lines_with_texts_are_documents(tmp_path: Path) -> None:
    text = "".join(f'{{"msg": "run {word} is over", "tps": {tps}}}\n' for tps, word in enumerate("abcdef"))
    assert [known["throughput"][0] for known in figures_of(tmp_path, text, TPS_PATH)] == list(range(6))
    wrapped = "".join(json.dumps({"log": line, "stream": "stdout"}) + "\n" for line in text.splitlines())
    assert figures_of(tmp_path, wrapped, TPS_PATH) == figures_of(tmp_path, text, TPS_PATH)


def test_counts_of_paths_are_exact(tmp_path: Path) -> None:
    assert figures_of(tmp_path, '{"n": 7}', "operations=$.n operations") == [{"operations": (7, 0)}]


def test_lines_around_a_document_are_unknown(tmp_path: Path) -> None:
    path = write_file(tmp_path, 'Starting\n{"tps": 1}\n', "tool.json")
    (run,) = read_file(path, {"json": TPS_PATH}, NAME)
    assert [note.name for note in run.result.notes] == ["unknown"]
    assert '"Starting"' in run.result.notes[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tps": "1,234.5"}', "is not a number in document 1: 1,234.5"),
        ('{"tps": "1,5"}', "is not a number in document 1: 1,5"),
        ('{"tps": "12.5k"}', "is not a number in document 1: 12.5k"),
        ('{"tps": null}', "$.tps is null in document 1: the tool has no value for throughput"),
        ('{"tps": true}', "is not a number in document 1: True"),
        ('{"tps": 1}\n{"tps": NaN}', "$.tps is NaN in document 2: the tool has no value"),
        ('{"tps": Infinity}', "$.tps is Infinity in document 1"),
        ('{"tps": "inf"}', '$.tps is "inf" in document 1'),
        (f'{{"tps": {"9" * 400}}}', "is not a number in document 1: 999"),
        ('{"tps": {"mean": 1}}', "is not a number in document 1: {"),
        ('{"tps": -1}', "throughput is negative"),
        ('{"qps": 1}', "does not match anything in document 1"),
        ('{"tps": 1}\n{"qps": 2}', "does not match anything in document 2"),
        ('{"tps": 1, "tps": 2}', "occurs twice"),
        ('{"tps": 1', "the JSON is truncated or damaged"),
        (' "tps": 1}\n{"tps": 2}', "the JSON is truncated or damaged"),
        ('},\n{"tps": 2}', "the JSON is truncated or damaged"),
        ('{"tps": 2} ]', "the JSON is truncated or damaged"),
        ("no JSON", "has no results in the format JSON by paths"),
    ],
)
def test_unusable_values_of_paths_are_refused(text: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(write_file(tmp_path, text, "tool.json"), {"json": TPS_PATH})


@pytest.mark.parametrize("text", ["throughput=$.tps furlongs", "throughput=tps op/s", "throughput=$.tps", "=$.a op/s"])
def test_invalid_paths_are_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match=r"unknown unit|must be metric=path unit"):
        parse_figure(text)


def test_elements_of_lists_keep_their_figures(tmp_path: Path) -> None:
    document = {"runs": [{"tps": 1, "lat": {"p99": 2}}, {"tps": 3, "lat": {"p99": 4}}]}
    paths = ("throughput=$.runs[*].tps op/s", "all.p99=$.runs[*].lat.p99 ms")
    assert [known["throughput"][0] for known in figures_of(tmp_path, json.dumps(document), *paths)] == [1, 3]
    del document["runs"][0]["lat"]
    message = refusal(write_file(tmp_path, json.dumps(document), "tool.json"), {"json": "\n".join(paths)})
    assert "$.runs[*].lat.p99 is null or missing in document 1" in message
