"""Names, repeats, clients and facts of imported runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from imports_support import FIXTURES, YCSB, read_single, refusal, write_file
from liar_support import ycsb
from loadstone.commands import compare
from loadstone.errors import LoadstoneError
from loadstone.importers.read import FORMATS, detect_format, is_equal, parse_fact, read_all, read_file
from loadstone.importers.source import text_of
from loadstone.judge.judge import judge_results
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult

RUN = (YCSB / "run_a.out").read_text()


# Facts on the command line.


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("clients=4", ("clients", 4)),
        ("device_read_bps=125e6", ("device_read_bps", 125e6)),
        ("device_read_bps=1690.2 MB/s", ("device_read_bps", 1690.2e6)),
        ("network_bps=10Gbit/s", ("network_bps", 1.25e9)),
        ("cache_bytes=8 GiB", ("cache_bytes", 8 * 2**30)),
        ("durability=device", ("durability", "device")),
        ("url=a=b", ("url", "a=b")),
        ("networked=true", ("networked", True)),
        ("version = 4.1.3 ", ("version", "4.1.3")),
    ],
)
def test_a_fact_is_read(text: str, fact: tuple[str, Scalar]) -> None:
    assert parse_fact(text) == fact


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clients", 'a fact must be name=value, got "clients"\nhint: for example --fact clients=4'),
        ("=4", 'got ""'),
        (
            "9lives=4",
            'a fact\'s name must start with a letter and contain only letters, digits and _ . -, got "9lives"',
        ),
        ("clients=", 'the fact "clients" has no value'),
        (
            "network_bps=fast",
            'the fact "network_bps" must be a number in B/s, got "fast"\nhint: write it in B/s, or with',
        ),
        ("network_bps=3 ms", 'the fact "network_bps" must be a number in B/s, got "3 ms"'),
    ],
)
def test_a_bad_fact_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        parse_fact(text)
    assert message in str(caught.value)


def test_unlogged_clients_are_a_fact_and_never_inferred() -> None:
    path = FIXTURES / "regular.log"
    assert read_single(path).result.clients is None
    result = read_single(path, clients=4).result
    assert (result.clients, result.notes) == (4, ())
    # The number of clients is a field of the result, not a fact.
    assert "clients" not in result.facts


def test_fact_overrides_the_log_with_a_note() -> None:
    result = read_single(FIXTURES / "accelerated.log", clients=8).result
    assert result.clients == 8
    assert [(note.name, note.message) for note in result.notes] == [
        ("facts-disagree", "stated facts override the log: clients (8 instead of 4)")
    ]
    assert is_equal(2000, 2000.0)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"clients": "many"}, 'the fact "clients" must be a whole number of at least 1, got "many"'),
        ({"clients": 0}, 'got "0"'),
        ({"clients": True}, 'got "True"'),
        ({"loop": "round"}, 'the fact "loop" must be closed or open, got "round"'),
    ],
)
def test_a_fact_that_makes_no_sense_is_refused(facts: dict[str, Scalar], message: str) -> None:
    assert message in refusal(FIXTURES / "regular.log", facts)


def test_the_loop_may_be_a_fact() -> None:
    assert read_single(FIXTURES / "regular.log", loop="open").result.loop == "open"


# Facts files.


def test_option_overrides_facts_file_and_log(tmp_path: Path) -> None:
    path = write_file(tmp_path, "ycsb run basic -threads 2\n" + RUN)
    write_file(tmp_path, "clients: 5\ndurability: os\ntool: fork\nnetwork_bps: 125e6\n", "bench.facts.yaml")
    result = read_single(path, durability="device").result
    assert (result.clients, result.facts["durability"], result.facts["tool"]) == (5, "device", "fork")
    # YAML 1.1 reads 125e6 as a string.
    assert result.facts["network_bps"] == 125e6


def test_facts_file_of_the_full_name_takes_precedence(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN)
    write_file(tmp_path, "durability: os\n", "bench.facts.yaml")
    write_file(tmp_path, "durability: none\n", "bench.log.facts.yaml")
    assert read_single(path).result.facts["durability"] == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "clients: [1, 2]\n",
            'the fact "clients" must be a number, a word, true or false, got list (bench.facts.yaml)',
        ),
        ("- clients\n", "a facts file must be a mapping of names to values (bench.facts.yaml)"),
        ("variants:\n  bench: 4\n", '"bench" must be a mapping of names to values (bench.facts.yaml)'),
        ("variants: 3\n", '"variants" must be a mapping of names to values (bench.facts.yaml)'),
        ("a: {b\n", "not YAML: expected ',' or '}', but got '<stream end>' (bench.facts.yaml:2)"),
        (
            "variants:\n  banch: {clients: 4}\n",
            'there is no variant "banch" in bench.log (bench.facts.yaml)\nhint: the variants in bench.log are bench',
        ),
    ],
)
def test_a_bad_facts_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write_file(tmp_path, text, "bench.facts.yaml")
    assert message in refusal(write_file(tmp_path, RUN))


def test_variants_may_have_clients_of_their_own(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN + RUN)
    write_file(tmp_path, "variants:\n  bench-1: {clients: 4}\n  bench-2: {clients: 8}\n", "bench.facts.yaml")
    assert [dict(run.result.config) for run in read_file(path, {})] == [
        {"variant": "bench-1", "clients": 4},
        {"variant": "bench-2", "clients": 8},
    ]


# Variants and repeats.


def test_runs_of_a_file_are_numbered_or_repeats(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN * 3, "run a.log")
    results = [run.result for run in read_file(path, {})]
    assert [result.config["variant"] for result in results] == ["run a-1", "run a-2", "run a-3"]
    assert [result.trial for result in results] == ["run-a-1", "run-a-2", "run-a-3"]
    named = [run.result for run in read_file(path, {"variant": "lmdb"})]
    assert [(result.config["variant"], result.repeat) for result in named] == [("lmdb", 1), ("lmdb", 2), ("lmdb", 3)]


def test_runs_that_differ_by_clients_are_variants(tmp_path: Path) -> None:
    log = "".join(f"ycsb run basic -threads {clients}\n{RUN}" for clients in (1, 2, 4))
    assert [dict(run.result.config) for run in read_file(write_file(tmp_path, log), {})] == [
        {"variant": "bench", "clients": clients} for clients in (1, 2, 4)
    ]


def test_fact_does_not_merge_several_variants() -> None:
    assert 'the fact variant="x" would give 5 variants the same name' in refusal(
        FIXTURES / "hbase-read-only.csv", {"variant": "x"}
    )


def test_equal_variants_of_several_files_are_repeats(tmp_path: Path) -> None:
    paths = []
    for name in "abc":
        (tmp_path / name).mkdir()
        paths.append(write_file(tmp_path / name, RUN))
    results = [run.result for run in read_all([*paths, FIXTURES / "accelerated.log"], {})]
    assert [(result.trial, result.config["variant"], result.repeat) for result in results] == [
        ("bench", "bench", 1),
        ("bench.2", "bench", 2),
        ("bench.3", "bench", 3),
        ("accelerated", "accelerated", 1),
    ]


# Settings of the work: the judge compares them.

MEMTIER, LATTE, TEXT = "memtier.json", "latte.json", "memtier.txt"
COMMAND = "memtier_benchmark -s 127.0.0.1 -t 2 -c 3 -n 500 {}\n"
FIELD_OF_RATE = '{"rate": 2000.0, "rate_sine_amplitude": 0.5, "rate_sine_period": {"secs": 60, "nanos": 0}}'


def read_pair(folder: Path, name: str, before: str, after: str) -> list[TrialResult]:
    """The trials of two logs that differ by one replacement."""
    text = (FIXTURES / name).read_text()
    if name == TEXT:
        first, second = COMMAND.format(before) + text, COMMAND.format(after) + text
    else:
        assert before in text
        first, second = text, text.replace(before, after, 1)
    paths = [write_file(folder, log, f"{side}{Path(name).suffix}") for side, log in (("a", first), ("b", second))]
    return [imported.result for imported in read_all(paths, {})]


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        (MEMTIER, '"protocol": "redis"', '"protocol": "memcache_binary"', "redis against memcache_binary"),
        (MEMTIER, '"pipeline": 1', '"pipeline": 10', "pipeline (1 against 10)"),
        (MEMTIER, '"key_pattern": "R:R"', '"key_pattern": "S:R"', "R:R against S:R"),
        (MEMTIER, '"data_size": 32', '"data_size": 4096', "record size (32 B against 4.10 kB)"),
        (MEMTIER, '"data_size_range": "0:0"', '"data_size_range": "32:64"', ""),
        (MEMTIER, '"random_data": "false"', '"random_data": "true"', "false against true"),
        (MEMTIER, '"multi_key_get": 0', '"multi_key_get": 16', "0 against 16"),
        (TEXT, "", "--pipeline=10", "pipeline (1 against 10)"),
        (TEXT, "", "-P memcache_text", "redis against memcache_text"),
        (TEXT, "-d 32", "--data-size 4096", "record size (32 B against 4.10 kB)"),
        (TEXT, "--key-pattern=S:S", "--key-pattern S:R", "S:S against S:R"),
        (TEXT, "--key-maximum=1000", "", "number of records (1,001 against 10,000,001)"),
        (LATTE, '"100000"', '"1000000"', "row count (100,000 against 1,000,000)"),
        (LATTE, '"weight": 1.0', '"weight": 1.0}, {"name": "scan", "weight": 1.0', "against 50 % run, 50 % scan"),
        (LATTE, '"count": 1,', '"count": 4,', "connections (1 against 4)"),
        (LATTE, '"rate": 2000.0', f'"rate": {FIELD_OF_RATE}', ""),
    ],
)
def test_logs_of_different_work_are_refused(name: str, before: str, after: str, message: str, tmp_path: Path) -> None:
    first, second = read_pair(tmp_path, name, before, after)
    facts = {fact for fact in {*first.facts, *second.facts} if first.facts.get(fact) != second.facts.get(fact)}
    assert facts - {"store.command"}
    if message:
        judgement = judge_results(ResultSet("logs", [first, second]))
        texts = [finding.message for finding in judgement.all_findings if finding.check == "sides-differ"]
        assert any(message in text for text in texts), texts


PGBENCH = {"work.connect": "false", "work.define": "none", "work.latency_limit": "none"}


@pytest.mark.parametrize(
    ("name", "command", "facts"),
    [
        ("pgbench-rate.txt", "pgbench bench -c 2 -j 2 -T 5 -R 100", {"target": 100, **PGBENCH}),
        ("pgbench-rate.txt", "pgbench -R 100 -c 2 bench -T 5", {"target": 100, **PGBENCH}),
        ("pgbench-rate.txt", '$ su -c "/usr/bin/pgbench bench --rate=100" postgres', {"target": 100, **PGBENCH}),
        ("pgbench-rate.txt", "`pgbench bench -R 100`", {"target": 100, **PGBENCH}),
        ("pgbench-rate.txt", "db1:~$ pgbench bench", PGBENCH),
        (
            "sysbench-oltp.txt",
            "sysbench oltp_read_write --tables=2 run",
            {"records": 20_000, "script": "oltp_read_write"},
        ),
        (
            "sysbench-oltp.txt",
            "sysbench --tables=2 oltp_read_write run",
            {"records": 20_000, "script": "oltp_read_write"},
        ),
        (
            "sysbench-oltp.txt",
            "sysbench oltp_read_write run --tables=2",
            {"records": 20_000, "script": "oltp_read_write"},
        ),
        ("memtier.txt", "memtier_benchmark -d 64 --ratio 1:1", {"record_bytes": 64, "work.ratio": "1:1"}),
        ("redis-benchmark.csv", "redis-benchmark --csv -r 100 -P 4", {"keyspace": 100, "pipeline": 4}),
        ("fio-normal.txt", "fio jobs/a.fio --output-format=normal", {}),
        ("fio-normal.txt", "fio jobs/a.fio", {}),
        ("hbase-pe-0.98.txt", "hbase pe --nomapred --rows=1000 randomRead 2", {}),
        ("../ycsb/run_a.out", "ycsb run basic -threads 2", {"binding": "basic", "phase": "run"}),
        ("go-ycsb-table.txt", "go-ycsb run -p batch.size=7 mysql -P workloads/a", {"batch.size": 7}),
    ],
)
def test_options_in_any_order_are_facts(name: str, command: str, facts: dict[str, Scalar], tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    for run in read_file(write_file(tmp_path, f"{command}\n{text}", Path(name).name), {}):
        assert run.result.facts.items() >= facts.items()
        assert str(run.result.facts["store.command"]).split()[0] in command


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("pgbench-rate.txt", "pgbench results"),
        ("pgbench-rate.txt", "# pgbench bench"),
        ("sysbench-oltp.txt", "We ran sysbench on the server"),
        ("redis-benchmark.csv", "redis-benchmark with 100 clients"),
        ("redis-benchmark.csv", "redis-benchmark"),
        ("fio-normal.txt", "fio on the new disk"),
        ("cassandra-stress-2.1.7.txt", "cassandra-stress read benchmark"),
        ("../ycsb/run_a.out", "ycsb run with 4 threads"),
    ],
)
def test_titles_are_not_command_lines(name: str, title: str, tmp_path: Path) -> None:
    path = FIXTURES / name
    runs = read_file(write_file(tmp_path, f"{title}\n{path.read_text()}", path.name), {})
    assert [run.result.facts for run in runs] == [run.result.facts for run in read_file(path, {})]


def test_command_states_options_of_older_hbase(tmp_path: Path) -> None:
    lines = (FIXTURES / "hbase-pe-0.98.txt").read_text().splitlines(keepends=True)
    command = "hbase org.apache.hadoop.hbase.PerformanceEvaluation --nomapred --presplit=4 --rows=1000 randomRead 2\n"
    (run,) = read_file(write_file(tmp_path, command + "".join(lines[1:])), {})
    assert run.result.facts.items() >= {"rows": 2000, "regions": 4, "store.command": command.strip()}.items()


def test_nested_rate_of_latte_is_read(tmp_path: Path) -> None:
    text = (FIXTURES / LATTE).read_text()
    closed = '{"rate": null, "rate_sine_amplitude": null, "rate_sine_period": {"secs": 60, "nanos": 0}}'
    for rate, loop in ((FIELD_OF_RATE, "open"), (closed, "closed")):
        result = read_single(write_file(tmp_path, text.replace('"rate": 2000.0', f'"rate": {rate}'))).result
        assert (result.loop, result.facts.get("target")) == (loop, 2000 if loop == "open" else None)


# Formats.


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("accelerated.log", "ycsb"),
        ("hbase-accelerated-writes.md", "ycsb"),
        ("go-ycsb.txt", "go-ycsb"),
        ("go-ycsb-json.txt", "go-ycsb"),
        ("go-ycsb-table.txt", "go-ycsb"),
        ("cassandra-stress-read.txt", "cassandra-stress"),
        ("TestDFSIO_results.log", "testdfsio"),
        ("testdfsio-read.txt", "testdfsio"),
        ("hbase-pe-randomRead.txt", "hbase-pe"),
        ("fio-mixed.json", "fio"),
        ("fio-paced.txt", "fio"),
        ("hdfs-read.csv", "csv"),
        ("../ycsb/json.txt", "ycsb-json"),
        ("../ycsb/hdr_READ.hdr", "hlog"),
    ],
)
def test_the_format_is_found_by_content(name: str, format_: str) -> None:
    path = FIXTURES / name
    assert format_ == detect_format(path, text_of(path)).NAME


def test_nothing_is_found_where_nothing_is() -> None:
    source = Path(__file__).parents[1] / "conftest.py"
    assert refusal(source).startswith("error: the format of conftest.py is unknown")


def test_file_of_two_formats_needs_a_format_name(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN + (FIXTURES / "TestDFSIO_results.log").read_text())
    assert refusal(path) == (
        "error: bench.log has results in several formats: YCSB text, TestDFSIO results\n"
        "hint: choose one: loadstone import --format ycsb"
    )
    assert len(read_file(path, {}, format="ycsb")) == 1
    assert len(read_file(path, {}, format="testdfsio")) == 2


def test_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LoadstoneError) as caught:
        read_file(FIXTURES / "accelerated.log", {}, format="jmeter")
    assert str(caught.value) == f'error: there is no format "jmeter"\nhint: known formats: {", ".join(FORMATS)}'


def test_stated_start_orders_the_runs() -> None:
    (imported,) = read_file(FIXTURES / "pgbench-rate.txt", {"start": "2026-11-27T09:30:00+01:00"})
    assert imported.result.start_unix_ns == 1_795_768_200 * 10**9
    assert "start" not in imported.result.facts


@pytest.mark.parametrize("start", ["yesterday", "2026-11-27T09:30:00", "1795768200"])
def test_start_without_a_zone_is_refused(start: str) -> None:
    with pytest.raises(LoadstoneError, match="start must be a time with a zone"):
        read_file(FIXTURES / "pgbench-rate.txt", {"start": start})


def test_unquoted_start_is_a_time(tmp_path: Path) -> None:
    path = write_file(tmp_path, (FIXTURES / "pgbench-rate.txt").read_text(), "bench.log")
    write_file(tmp_path, "start: 2026-11-27T09:30:00Z\n", "bench.facts.yaml")
    (run,) = read_file(path, {})
    assert run.result.start_unix_ns == 1_795_771_800 * 10**9


def test_pgbench_before_15_tries_once(tmp_path: Path) -> None:
    text = (FIXTURES / "pgbench-rate.txt").read_text()
    older = "".join(line for line in text.splitlines(keepends=True) if "tries" not in line and "failed" not in line)
    assert older != text
    for content in (text, older):
        assert read_single(write_file(tmp_path, content, "bench.log")).result.facts["tries"] == 1


def test_compare_states_facts_of_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write_file(tmp_path, "ycsb run basic -threads 2\n" + RUN, f"{name}.log") for name in "ab"]
    unknown = []
    for facts in ([], ["--fact", "records=1000"]):
        assert compare.main([*map(str, paths), "--json", *facts]) == 0
        findings = json.loads(capsys.readouterr().out)["findings"]
        unknown.append([item for item in findings if "number of records" in item["message"]])
    assert list(map(bool, unknown)) == [True, False]


def test_fact_is_equal_in_another_spelling() -> None:
    spellings = [("LocalQuorum", "LOCAL_QUORUM"), ("200 ms", "200ms"), ("4 KiB", "4k"), ("-1", "-1.0")]
    assert all(is_equal(*pair) for pair in spellings)
    assert not any(is_equal(*pair) for pair in [("-1", "1"), ("200 ms", "200 s"), ("LOCAL_ONE", "LOCAL_QUORUM")])


def test_compare_refuses_facts_for_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(tmp_path / "a.log"), str(tmp_path / "b.log"), "--fact", "records=1000"]) == 1
    assert "there are no results at" in capsys.readouterr().err
    assert compare.main([str(tmp_path), str(tmp_path), "--fact", "records=1000"]) == 1
    assert "facts can be stated only for files from other tools" in capsys.readouterr().err


def test_stated_start_that_contradicts_the_log_is_named() -> None:
    stated = read_file(FIXTURES / "fio-mixed.json", {"start": "2020-01-01T00:00:00Z"})[0].result
    (note,) = [note for note in stated.notes if note.name == "facts-disagree"]
    assert "start (20" in note.message
    assert "logged.start" not in stated.facts


def test_unknown_facts_need_no_further_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides: list[str] = []
    for hour, (name, rate) in enumerate((("plain", 1000), ("tuned", 1300))):
        paths = []
        for day, text in enumerate(ycsb(rate, name), 10):
            start = f"variant: {name}\nstart: '2026-11-{day}T0{hour}:00:00Z'\n"
            write_file(tmp_path, start, f"{name}{day}.facts.yaml")
            paths.append(str(write_file(tmp_path, text, f"{name}{day}.log")))
        sides.append(",".join(paths))
    assert compare.main([*sides, "--expect", "throughput >= 1.1x"]) == 3
    assert "loadstone run" not in capsys.readouterr().out
