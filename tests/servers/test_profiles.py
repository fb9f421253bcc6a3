"""User profiles of cassandra-stress, and the lab's named statements, on a real Cassandra.

The recorded rows were written by cassandra-stress 4.0-alpha2.
"""

from __future__ import annotations

import json
import re
import subprocess
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from stress_support import tool_command
from systems_support import up
from test_cassandra_stress import Target, result


@pytest.fixture(scope="module")
def target(program: Path) -> Iterator[Target]:
    with up("cassandra") as cassandra:
        yield Target(cassandra, program)


PROFILES = Path(__file__).parents[1] / "fixtures" / "cassandra-stress"
# Of a partition with three clustering columns, as in `levels`, cassandra-stress writes only the first rows.
SHAPES = ["simple", "levels", "lists", "statics", "series", "types", "composite", "condition"]


def rows_of(target: Target, keyspace: str, table: str = "t") -> set[str]:
    """The rows of a profile's table, as the server's JSON."""
    return {str(row["[json]"]) for row in target.query(f"SELECT JSON * FROM {keyspace}.{table}")}


@pytest.mark.parametrize("shape", SHAPES)
def test_profiles_write_the_tools_rows(target: Target, shape: str) -> None:
    profile = PROFILES / f"{shape}.yaml"
    done = target.run(f"user profile={profile} ops(insert=1) n=20 no-warmup -pop seq=1..20 -rate threads=2")
    assert result(done.stdout, "total partitions") == 20
    recorded = set((PROFILES / f"{shape}.rows").read_text().splitlines())
    assert recorded
    assert recorded <= rows_of(target, f"p_{shape}")
    assert shape in ("levels", "series") or recorded == rows_of(target, f"p_{shape}")


# Lists that grow are not reproducible, and the rows of `series` are recorded for three partitions only.
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ("lists", "series")])
def test_rows_of_the_tool_are_valid(target: Target, shape: str) -> None:
    """The tool may write only the first rows of a partition."""
    user = f"user profile={PROFILES / f'{shape}.yaml'} no-warmup"
    target.run(f"{user} ops(insert=1) n=1 -rate threads=1")
    target.query(f"TRUNCATE p_{shape}.t")
    for row in (PROFILES / f"{shape}.rows").read_text().splitlines():
        target.query(f"INSERT INTO p_{shape}.t JSON $${row}$$")
    line = f"{user} ops(validate=1) n=20 -pop seq=1..20 -rate threads=2"
    assert result(target.run(line).stdout, "total errors") == 0
    # Data written by the lab is complete.
    spec = json.loads(target.run(line, "--print-spec").stdout.splitlines()[-1])
    assert spec["work"].pop("written_by_tool")
    text = json.dumps({**spec, "wait_for_start": False}) + "\n"
    done = subprocess.run([target.program, "trial"], input=text, capture_output=True, text=True, timeout=120)
    assert ("is missing" in done.stdout) == (shape == "levels")


# The versions of the tool whose data differ. Version 3.11 validates over Thrift, which servers from 4.0 on lack.
VERSIONS = {"3.11": "3.11.5", "4": "4.0-alpha2"}
# The shapes whose tables version 4.0 can validate.
VALID = ("simple", "lists", "condition")


def run_tool(target: Target, tool: list[str], line: str) -> str:
    """The output of the tool, which reports failed operations and continues."""
    address = ["-node", target.up.properties["hosts"], "-port", f"native={target.up.properties['port']}"]
    command = [*tool, *line.split(), "-errors", "ignore", *address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("compat", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_both_programs_write_equal_tables(target: Target, tmp_path: Path, shape: str, compat: str) -> None:
    tool = tool_command(VERSIONS[compat], tmp_path, "-Xmx512m", "-XX:+UseSerialGC")
    lines = {}
    for writer in ("tool", "loadstone"):
        keyspace = f"{writer}_{shape}"
        target.query(f"DROP KEYSPACE IF EXISTS {keyspace}")
        profile = tmp_path / f"{writer}.yaml"
        text = (PROFILES / f"{shape}.yaml").read_text().replace(f"p_{shape}", keyspace)
        # Version 4.0 added conditions.
        profile.write_text(text if compat == "4" else text.replace("  condition: IF body = NULL\n", ""))
        lines[writer] = f"user profile={profile} ops(insert=1) n=20 no-warmup -pop seq=1..20 -rate threads=2"
    assert "\nEND\n" in run_tool(target, tool, lines["tool"])
    target.run(lines["loadstone"], "-compat", compat)
    tables = {writer: rows_of(target, f"{writer}_{shape}") for writer in lines}
    assert tables["tool"]
    assert tables["tool"] <= tables["loadstone"]
    assert shape == "levels" or tables["tool"] == tables["loadstone"]
    # Loadstone refuses to validate lists that grow.
    done = target.run(lines["tool"].replace("insert", "validate"), "-compat", compat, code=shape == "lists")
    assert shape == "lists" or result(done.stdout, "total errors") == 0
    operation = "validate" if compat == "4" and shape in VALID else "q"
    printed = run_tool(target, tool, lines["loadstone"].replace("insert", operation))
    assert (result(printed, "total partitions"), result(printed, "total errors")) == (20, 0)


VALIDATED = """
keyspace: validated
keyspace_definition: |
  CREATE KEYSPACE validated WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
table: t
table_definition: |
  CREATE TABLE t (id bigint, a int, b text, v text, m frozen<map<text, frozen<list<int>>>>,
    u frozen<tuple<int, date>>, g set<text>, PRIMARY KEY (id, a, b))
columnspec:
  - {name: g, size: fixed(2)}
  - {name: a, cluster: uniform(1..4)}
  - {name: b, cluster: fixed(3)}
  - {name: m, size: fixed(2)}
queries:
  partition: {cql: SELECT * FROM t WHERE id = ?, fields: samerow, validate: true}
  range: {cql: "SELECT a, b, v FROM t WHERE id = ? AND a >= ?", fields: multirow, validate: true}
  row: {cql: "SELECT v, m, u FROM t WHERE id = ? AND a = ? AND b = ?", fields: samerow, validate: true}
token_range_queries:
  all: {columns: "id, v", page_size: 50}
"""


def test_rows_with_clustering_columns_are_validated(target: Target, tmp_path: Path) -> None:
    profile = tmp_path / "validated.yaml"
    profile.write_text(VALIDATED)
    line = f"user profile={profile} n=30 no-warmup"
    target.run(f"{line} ops(insert=1) -pop seq=1..30 -rate threads=2")
    reads = f"user profile={profile} n=120 no-warmup ops(partition=1,range=1,row=1,validate=1,all=1)"
    done = target.run(f"{reads} -pop seq=1..30 -rate threads=2")
    assert result(done.stdout, "total errors") == 0
    assert re.search(r"^partition,", done.stdout, re.MULTILINE)
    (key,) = target.query("SELECT id, a, b FROM validated.t LIMIT 1")
    target.query("UPDATE validated.t SET v = 'other' WHERE id = {id} AND a = {a} AND b = $${b}$$".format(**key))
    done = target.run(f"user profile={profile} n=30 no-warmup ops(partition=1) -pop seq=1..30 -rate threads=1", code=1)
    assert "has a different value for v" in done.stderr
    assert "Data returned was not validated" in done.stdout


PLACES = """
keyspace: combined
keyspace_definition: |
  CREATE KEYSPACE combined WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
table: t
extra_definitions:
  - CREATE TYPE place (street text, floor int)
  - CREATE TABLE t (id bigint, a int, home frozen<place>, office place, marks map<text, int>, PRIMARY KEY (id, a))
  - CREATE INDEX marked ON t (keys(marks))
columnspec:
  - {name: a, cluster: fixed(8)}
  - {name: marks, size: fixed(2)}
insert: {partitions: fixed(2), select: fixed(4)/8, batchtype: UNLOGGED}
queries:
  places: {cql: SELECT * FROM t WHERE id = ?, fields: samerow}
"""
PEOPLE = """
specname: people
keyspace: combined
table: people
table_definition: CREATE TABLE people (id bigint PRIMARY KEY, home frozen<place>, v text, w int)
insert: {row-population: fixed(1)/3}
queries:
  person: {cql: SELECT * FROM people WHERE id = ?, fields: samerow, validate: true}
token_range_queries: {pages: {columns: v, page_size: 50}}
"""


def test_operations_of_several_profiles_run(target: Target, tmp_path: Path) -> None:
    places, people = tmp_path / "places.yaml", tmp_path / "people.yaml"
    places.write_text(PLACES)
    people.write_text(PEOPLE)
    user = f"user profile={places},{people} n=40 no-warmup -pop seq=1..40 -rate threads=2"
    for operation in ("insert", "people.insert"):
        done = target.run(user.replace(" n=40", f" ops({operation}=1) n=40"))
        assert result(done.stdout, "total partitions") == 40
    rows = [json.loads(row) for row in rows_of(target, "combined")]
    # Half of the rows of each partition, but at least one.
    assert len({row["id"] for row in rows}) == 40 < len(rows) < 40 * 8
    assert all(row["home"]["street"] and row["office"]["floor"] and len(row["marks"]) == 2 for row in rows)
    rows = [json.loads(row) for row in rows_of(target, "combined", "people")]
    assert len(rows) == 40
    assert all(row["home"] and row["v"] is row["w"] is None for row in rows)
    explained = target.run(user.replace(" n=40", " ops(insert=3,people.insert=1) n=40"), "--explain").stdout
    assert "  insert 75 %: writes a random part of the rows (4 of 8) of 2 partitions; " in explained
    assert "  people.insert 25 %: writes all rows of 1 partition; " in explained
    done = target.run(user.replace(" n=40", " ops(places=1,people.person=2,people.pages=1) clustering=fixed(3) n=300"))
    assert result(done.stdout, "total errors") == 0
    counts = re.search(r"^Total errors .*\[(.*)\]", done.stdout, re.MULTILINE)
    assert counts
    assert [part.partition(":")[0] for part in counts[1].split(", ")] == ["people.pages", "people.person", "places"]
    people.write_text(PEOPLE.replace("specname: people", "specname: combined.t"))
    done = target.run(user.replace(" n=40", " ops(insert=1) n=40"), code=1)
    assert f"{people}:2: two profiles are named combined.t" in done.stderr


CONDITIONAL = """
keyspace: conditional
keyspace_definition: |
  CREATE KEYSPACE conditional WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
table: t
table_definition: CREATE TABLE t (id bigint, a int, v text, PRIMARY KEY (id, a))
columnspec:
  - {name: a, cluster: fixed(5)}
queries:
  replace: {cql: UPDATE t SET v = ? WHERE id = ? AND a = ? IF v = ?, fields: samerow}
token_range_queries:
  pages: {columns: "*", page_size: 2}
"""


def test_token_ranges_are_read_to_their_ends(target: Target, tmp_path: Path) -> None:
    profile = tmp_path / "conditional.yaml"
    profile.write_text(CONDITIONAL)
    line = f"user profile={profile} no-warmup"
    target.run(f"{line} ops(insert=1) n=30 -pop seq=1..30 -rate threads=1")
    (node,) = target.query("SELECT tokens FROM system.local")
    tokens = node["tokens"]
    assert isinstance(tokens, list)
    borders = sorted({-(2**63), *map(int, tokens), 2**63 - 1})
    rows = Counter(
        bisect_left(borders, int(str(row["place"])))
        for row in target.query("SELECT token(id) AS place FROM conditional.t")
    )
    # A page has two rows, and an empty range has a page.
    pages = sum(max(1, (rows[end] + 1) // 2) for end in range(1, len(borders)))
    assert pages > len(borders)
    done = target.run(f"{line} ops(pages=1) n={pages} -pop seq=1..30 -rate threads=1")
    assert result(done.stdout, "total partitions") == 30


def test_conditions_get_the_values_of_the_server(target: Target, tmp_path: Path) -> None:
    profile = tmp_path / "conditional.yaml"
    profile.write_text(CONDITIONAL.replace("conditional", "replaced").replace("fixed(5)", "fixed(1)"))
    line = f"user profile={profile} no-warmup"
    target.run(f"{line} ops(insert=1) n=20 -pop seq=1..20 -rate threads=2")
    written = rows_of(target, "replaced")
    for row in target.query("SELECT id, a FROM replaced.t"):
        target.query("UPDATE replaced.t SET v = 'other' WHERE id = {id} AND a = {a}".format(**row))
    assert not written & rows_of(target, "replaced")
    done = target.run(f"{line} ops(replace=1) n=20 -pop seq=1..20 -rate threads=2")
    assert result(done.stdout, "total errors") == 0
    assert rows_of(target, "replaced") == written


LINES = Path(__file__).parents[2] / "crates/stress/fixtures/accepted-lines.txt"
# The parser of PerfKitBenchmarker finds each of these labels in the last 20 lines of the log, with this expression.
LATENCIES = ("mean", "median", "95th percentile", "99th percentile", "99.9th percentile", "max")
PERFKIT = ["op rate", "partition rate", "row rate", "Total partitions", "Total errors", "Total operation time"]
PERFKIT += [f"latency {name}" for name in LATENCIES]


def scale_lines(harness: str, files: Path) -> list[list[str]]:
    """The recorded command lines of a test harness, as short runs on one node without a `-node` option."""
    section = LINES.read_text().partition(f"# {harness}: ")[2].partition("\n# ")[0]
    lines = []
    for line in section.splitlines()[1:]:
        # Without a count, a warm-up has 50,000 operations of each kind.
        line = re.sub(r" -node \S+", "", line).replace(" -", " no-warmup -", 1)
        line = re.sub(r" n=\w+", " n=40", re.sub(r" duration=\w+", " duration=1s", line))
        line = re.sub(r"([01])\d*\.\.\w+", r"\1..40", re.sub(r"seq=\d{2,}\.\.\w+", "seq=1..40", line))
        line = line.replace("factor=3", "factor=1").replace("profile=", f"profile={PROFILES}/")
        lines.append(line.replace(" file=", f" file={files}/").split())
    return lines


def test_jobs_of_casskop_run(target: Target, tmp_path: Path) -> None:
    lines = scale_lines("casskop", tmp_path)
    assert len(lines) == 6
    profile, original = tmp_path / "readings.yaml", PROFILES / "readings.yaml"
    profile.write_text(original.read_text())
    lines = [[argument.replace(str(original), str(profile)) for argument in arguments] for arguments in lines]
    # Cassandra 4.0 and 5.0 removed these options of tables, and the message names each of them.
    for message, removed, replacement in (
        ("Missing sub-option 'class' for the 'compression' option", "sstable_compression", "class"),
        ("Unknown property 'dclocal_read_repair_chance'", r"\n +AND (dclocal_)?read_repair_chance.*", ""),
    ):
        assert message in target.run(" ".join(lines[0]), code=1).stderr
        profile.write_text(re.sub(removed, replacement, profile.read_text()))
    for arguments in lines:
        # Without a length, the tool measures at least 30 intervals.
        has_length = any(argument.startswith(("n=", "duration=")) for argument in arguments)
        options = [] if has_length else ["-log", "interval=20ms"]
        done = target.run(" ".join(arguments), *options)
        assert result(done.stdout, "total partitions") > 0
        assert result(done.stdout, "total errors") == 0
        assert done.stdout.endswith("\n\nEND\n")
    assert target.query("SELECT device FROM fleet.readings LIMIT 1")
    pages = {page for arguments in lines for page in arguments if page.endswith(".html")}
    assert len(pages) == 5
    assert all(Path(page.removeprefix("file=")).stat().st_size > 0 for page in pages)


@pytest.mark.parametrize("compat", ["3.0", "4"])
def test_commands_of_perfkit_run(target: Target, tmp_path: Path, compat: str) -> None:
    lines = scale_lines("PerfKitBenchmarker", tmp_path)
    assert len(lines) == 9
    for arguments in lines:
        # PerfKitBenchmarker loads the rows that a command reads with `write` and `counter_write`.
        done = target.run(" ".join(arguments), "-compat", compat)
        assert result(done.stdout, "total errors") == 0
        if arguments[0] != "user":
            assert result(done.stdout, "total partitions") == 40
        end = "\n".join((tmp_path / "results.txt").read_text().splitlines()[-20:])
        if compat == "3.0":
            assert all(re.search(rf"{label}[\t ]+: ([\d\.:]+)", end) for label in PERFKIT)


def test_mistakes_in_profiles_have_lines(target: Target, tmp_path: Path) -> None:
    profile = tmp_path / "wrong.yaml"
    profile.write_text(VALIDATED.replace("cluster: fixed(3)", "cluster: fixed(x)").replace("queries:", "querys:", 1))
    done = target.run(f"user profile={profile} ops(insert=1)", code=1)
    assert f"{profile}:12: cluster: Invalid parameter list" in done.stderr
    assert f"{profile}:14: a profile has no key querys" in done.stderr


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("{name: m,", "{name: n,", 13, "validated.t has no column n"),
        ("v text, m", "v duration, m", 6, "column v of validated.t: values of the type duration cannot be generated"),
        ("SELECT * FROM t WHERE id", "SELECT * FROM t WHERE ie", 15, "the server cannot prepare"),
        ("SELECT v, m, u", "SELECT v, x, u", 17, "the server cannot prepare"),
        ("'replication_factor': 1", "'replication_factor': none", 3, "SyntaxError: "),
    ],
)
def test_servers_refusals_have_lines(
    target: Target, tmp_path: Path, before: str, after: str, line: int, message: str
) -> None:
    profile = tmp_path / "refused.yaml"
    profile.write_text(VALIDATED.replace("validated", f"refused{line}").replace(before, after))
    operations = "ops(insert=1,partition=1,range=1,row=1)"
    done = target.run(f"user profile={profile} {operations} n=1 no-warmup -rate threads=1", code=1)
    assert f"{profile}:{line}: {message.replace('validated', f'refused{line}')}" in done.stderr


STATEMENTS = """
question: What does an index cost?
systems: {cassandra: {store: cassandra, properties: {hosts: %s, port: %s}}}
workload:
  statements:
    define: ["CREATE TABLE users (id bigint PRIMARY KEY, city int, name text)"]
    table: users
    indexes: {city: "{index}"}
    population: 300
    columns: {city: {population: uniform(1..10)}, name: {size: fixed(20)}}
    statements:
      write: {}
      by_key: {cql: "SELECT * FROM users WHERE id = ?", compare: true}
      by_city: {cql: "SELECT * FROM users WHERE city = ? LIMIT 5 ALLOW FILTERING", weight: 0.5}
vary: {index: [none, sai]}
clients: 2
measure: {warmup: 0, operations: 100}
repeats: 2
"""


def test_named_statements_are_a_workload(target: Target, tmp_path: Path) -> None:
    text = STATEMENTS % (target.up.properties["hosts"], target.up.properties["port"])
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    folder = single_folder(tmp_path)
    assert [(trial.end, trial.is_failure) for trial in trials(folder)] == [("done", False)] * 4
    for trial in trials(folder):
        statuses = {name: set(counts) for name, counts in trial.statuses.items() if name != "CLEANUP"}
        assert statuses == {name: {"OK"} for name in ("write", "by_key", "by_city")}
    spec = json.loads(next(folder.path.glob("trials/*-sai-*/schema.spec.json")).read_bytes())
    assert spec["work"]["definitions"][-1] == "CREATE CUSTOM INDEX ON users (city) USING 'StorageAttachedIndex'"
