"""Named statements and profiles in experiments: their names, figures, distributions and forecast."""

from __future__ import annotations

from pathlib import Path

import pytest

from event_support import outcome, parse_events, ready, summary
from experiment_support import load_text, mistakes
from loadstone.engine.event_types import StatementRows
from loadstone.engine.events import Ready, Result, Summary
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import EndedLaunch, EngineLaunch
from loadstone.experiment.plan import forecast
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.workloads.cassandra_stress import CassandraStress, check_variant, figures
from loadstone.workloads.distribution import parse_distribution
from loadstone.workloads.generated_rows import rows_per_operation
from loadstone.workloads.statement_figures import statement_figures
from loadstone.workloads.stress_command import command_operations
from loadstone.workloads.stress_load import load_work

TEXT = """
systems: {cassandra: {store: cassandra}}
workload:
  statements:
    define: ["CREATE TABLE users (id bigint, day int, city int, name text, PRIMARY KEY (id, day))"]
    table: users
    indexes: {city: sai}
    population: 1000
    columns: {day: {cluster: fixed(1)}, city: {population: uniform(1..10)}, name: {size: fixed(100)}}
    statements:
      write: {}
      by_city: {cql: "SELECT * FROM users WHERE city = ?", weight: 3}
measure: {operations: 100000}
"""


@pytest.mark.parametrize(
    ("before", "after", "mistake"),
    [
        ("table: users", "table: usres", '`define` does not contain "usres"'),
        ("{city: sai}", "{ctiy: sai}", '`define` does not contain "ctiy"'),
        ("{day: {cl", "{dya: {cl", '`define` does not contain "dya"'),
        ("uniform(1..10)", "unifrm(1..10)", '"unifrm(1..10)" is not a distribution'),
        ("uniform(1..10)", "uniform(1..ten)", '"uniform(1..ten)" is not a distribution'),
        ("uniform(1..10)", "uniform(9..1)", 'the range of "uniform(9..1)" is empty'),
        ("by_city:", "all:", '"all" cannot be the name of a statement: the names of other figures begin with it'),
        ("by_city:", "stage1:", '"stage1" cannot be the name of a statement: the names of other figures begin with it'),
        ("by_city:", "Write:", 'two statements would share the figure "write.p99": figure names ignore case'),
        ("measure:", "compare: {metrics: [by_ctiy.p99]}\nmeasure:", 'there is no operation "by_ctiy"'),
    ],
)
def test_mistakes_in_statements_are_reported(tmp_path: Path, before: str, after: str, mistake: str) -> None:
    assert mistake in mistakes(tmp_path, TEXT.replace(before, after))


@pytest.mark.parametrize(
    ("cql", "changes"),
    [
        ("UPDATE users SET city = ?, name = ? WHERE id = ? AND day = ?", False),
        ("INSERT INTO users (id, day, name) VALUES (?, ?, ?)", False),
        ("UPDATE users SET city = 5 WHERE id = ? AND day = ?", True),
        ("UPDATE users USING TTL 5 SET city = ? WHERE id = ? AND day = ?", True),
        ("UPDATE users USING TIMEOUT 5s AND TIMESTAMP 5 SET city = ? WHERE id = ? AND day = ?", False),
        ("INSERT INTO users (id, day, name) VALUES (?, ?, ?) USING TIMEOUT 500ms", False),
        ("INSERT INTO users (id, day, name) VALUES (?, ?, ?) IF NOT EXISTS USING TIMESTAMP 5;", False),
        ("INSERT INTO users (id, day, name) VALUES (?, ?, ?) USING TIMESTAMP 5 AND TTL 60", True),
        ("INSERT INTO users (id, day, city) VALUES (?, ?, 5)", True),
        ("DELETE FROM users WHERE id = ?", True),
        ("SELECT city FROM users WHERE id = ?", False),
    ],
)
def test_changed_rows_are_not_compared(tmp_path: Path, cql: str, changes: bool) -> None:
    text = TEXT.replace("write: {}", f'write: {{}}\n      other: {{cql: "{cql}"}}').replace(
        "weight: 3", "compare: true"
    )
    message = '"other" overwrites rows with other values, so rows cannot be compared'
    assert (message in mistakes(tmp_path, text)) == changes
    assert (message in mistakes(tmp_path, text.replace(f'"{cql}"', f'"{cql}", weight: 0'))) is False


def test_figures_of_statements_are_compared(tmp_path: Path) -> None:
    """The name of a statement may resemble an operation of YCSB."""
    metrics = ("throughput", "write.p99", "scans.p99", "write.p50", "scans.p50")
    assert load_text(tmp_path, TEXT.replace("by_city", "scans")).experiment.compare.metrics == metrics
    profile = "workload: {cassandra-stress: {command: 'user profile=a.yaml ops(insert=1,latest=2)'}}"
    text = f"systems: {{cassandra: {{store: cassandra}}}}\n{profile}\n"
    metrics = ("throughput", "insert.p99", "latest.p99", "insert.p50", "latest.p50")
    assert load_text(tmp_path, text).experiment.compare.metrics == metrics
    (mistake,) = mistakes(tmp_path, text.replace("latest", "all"))
    assert mistake == '"all" cannot be the name of an operation: the names of other figures begin with it'


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("fixed(7)", 7),
        ("uniform(1..3k)", 1500.5),
        ("gaussian(1..1000000,10,5)", 10),
        ("gaussian(-100..100)", 0),
        # These means were computed from samples that the tool drew.
        ("exp(1..1000000)", 144_766),
        ("~exp(1..1000)", 710.7),
        ("extreme(1..1000,2)", 477.4),
        ("presets(70:1, 20:2.5, 10:3.5)", 1.55),
    ],
)
def test_means_follow_the_tools_distributions(text: str, mean: float) -> None:
    assert parse_distribution(text).mean == pytest.approx(mean, rel=1e-3)


def test_rows_per_operation_follow_the_statement() -> None:
    columns = [{"name": "day", "cluster": "fixed(100)"}]
    ratio = {"distribution": "fixed(1)", "divisor": 10.0}

    def rows(operation: object, visits: int = 1, **insert: object) -> float:
        return rows_per_operation(operation, {"columns": columns, "insert": insert}, visits)

    assert [rows("insert"), rows("insert", select=ratio), rows("insert", 4, partitions="fixed(2)")] == [100, 10, 50]
    texts = {"": 100, " AND day = ?": 1, " AND day > ?": 100, " LIMIT 5": 5}
    for text, count in texts.items():
        assert rows({"query": {"cql": f"SELECT * FROM users WHERE id = ?{text}"}}) == count


def test_forecast_grows_with_rows_per_operation(tmp_path: Path) -> None:
    def seconds(rows: int) -> tuple[float, float]:
        text = TEXT.replace("fixed(1)}", f"fixed({rows})}}").replace("population: 1000", "population: 1")
        return forecast.estimate_seconds(plan_experiment(load_text(tmp_path, text).experiment))

    few, many = seconds(1), seconds(10_000)
    # Six repeats of 100,000 operations with 10,000 rows of 112 bytes, at up to 200 MB/s.
    assert many[0] - few[0] > 0.9 * 6 * 100_000 * 10_000 * 112 / 200e6


def test_rows_of_each_statement_are_figures() -> None:
    first, last = parse_events(ready(), summary([outcome("by_city", "OK", range(1, 41))]))
    assert isinstance(first, Ready)
    assert isinstance(last, Summary)
    last.statements["by_city"] = StatementRows(rows=120, partitions=40)
    launched = [EndedLaunch("run", {"work": {"generator": "columns", "operations": []}}, Result(first, (), last))]
    phase = EngineLaunch("run", "measure", lambda *_: {})
    assert [(value.metric, value.value) for value in statement_figures(phase, launched)] == [("by_city.rows", 3.0)]


@pytest.mark.parametrize(
    ("command", "operations"),
    [
        ("write cl=ONE", ["write"]),
        ("insert", ["write"]),
        ("counterget", ["counter_read"]),
        ("mixed ratio( write=1, read=3 ) cl=ONE", ["write", "read"]),
        ("mixed ratio(read=1,counter_add=0)", ["read"]),
        ("mixed", ["read", "write"]),
        ("mixed ratio(write={share})", []),
        ("{operation} cl=ONE", []),
        ("user profile=p.yaml ops(insert=1,by_city=2)", ["insert", "by_city"]),
    ],
)
def test_operations_of_a_command_are_compared(command: str, operations: list[str]) -> None:
    assert command_operations(command) == operations


def test_loads_keep_the_options_of_the_data() -> None:
    work = CassandraStress(command="READ CL= QUORUM KeySize =20 -POP seq=1..5 -Col n=fixed(1)", population=9)
    assert load_work(work, "write").command == "write CL=QUORUM KeySize=20 -col n=fixed(1)"


@pytest.mark.parametrize(
    ("command", "accepted"), [("user profile={} ops(insert=1)", "1"), ("write -col n=fixed(1)", "12")]
)
@pytest.mark.parametrize("name", ["replication_factor", "datacenter1"])
def test_replication_of_profiles_is_compared(tmp_path: Path, command: str, accepted: str, name: str) -> None:
    profile = tmp_path / "profile.yaml"
    simple = (Path(__file__).parents[1] / "fixtures/cassandra-stress/simple.yaml").read_text()
    assert "'replication_factor'" in simple
    profile.write_text(simple.replace("'replication_factor'", f"'{name}'"))
    text = (
        "systems: {cassandra: {start: cassandra, table: {replication_factor: '{copies}'}}}\nvary: {copies: [1, 2]}\n"
        f"workload: {{cassandra-stress: {{command: '{command.format(profile)}', population: 10}}}}\n"
    )
    for variant in plan_experiment(load_text(tmp_path, text).experiment).variants:
        copies = str(variant.config["copies"])
        if copies in accepted:
            check_variant(variant)
            continue
        with pytest.raises(LoadstoneError, match=f"define the replication factor 1, and the experiment {copies}"):
            check_variant(variant)


def test_shortest_load_limits_the_partitions() -> None:
    spec = {"work": {"population": {"sequence": {"last": 100}}}}
    launched = []
    for name, operations in [("schema", 2), ("load", 60), ("load2", 100)]:
        first, last = parse_events(ready(), summary([outcome("insert", "OK", range(operations))]))
        assert isinstance(first, Ready)
        assert isinstance(last, Summary)
        launched.append(EndedLaunch(name, spec, Result(first, (), last)))
    values = figures(EngineLaunch("load", "prepare", lambda *_: {}), launched)
    assert {value.metric: value.value for value in values} == {"partitions_written": 60, "partitions": 100}


QUERY = {"query": {"cql": "SELECT …", "validates": True}}
PREDEFINED = {"generator": "stress", "validates": True}


@pytest.mark.parametrize(
    ("work", "operation", "compared"),
    [
        (PREDEFINED, "READ", True),
        (PREDEFINED, "COUNTER_READ", False),
        ({**PREDEFINED, "validates": False}, "READ", False),
        ({"generator": "columns", "operations": [{"name": "by_city", "work": QUERY}]}, "by_city", True),
        ({"generator": "columns", "operations": [{"name": "validate", "work": "validate"}]}, "validate", True),
        ({"generator": "columns", "operations": [{"name": "insert", "work": "insert"}]}, "insert", False),
    ],
)
def test_rows_compared_by_reads_are_figures(work: dict[str, object], operation: str, compared: bool) -> None:
    outcomes = [outcome(operation, "OK", range(1, 41)), outcome(operation, "UNEXPECTED_STATE", range(1, 3))]
    first, last = parse_events(ready(), summary([*outcomes, outcome(operation, "NOT_FOUND", range(1, 6))]))
    assert isinstance(first, Ready)
    assert isinstance(last, Summary)
    launched = [EndedLaunch("run", {"work": work}, Result(first, (), last))]
    values = statement_figures(EngineLaunch("run", "measure", lambda *_: {}), launched)
    expected = {"verified": 42, "wrong": 2} if compared else {}
    assert {value.metric: value.value for value in values} == expected
