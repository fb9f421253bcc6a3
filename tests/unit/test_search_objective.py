"""The accepted and refused forms of an objective."""

from __future__ import annotations

import pytest

from loadstone.search.objective import HINT, LIMIT_HINT, Term, parse_objective


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("p99 < 10ms", [Term("all.p99", "<", 10e6)]),
        ("read.p99.9<=5ms", [Term("read.p99.9", "<=", 5e6)]),
        ("mean < 1m30s and errors == 0", [Term("all.mean", "<", 90e9), Term("errors", "==", 0)]),
        ("errors = 0", [Term("errors", "==", 0)]),
        ("errors == 0%", [Term("errors", "==", 0, share=True)]),
        ("errors < 0.1%", [Term("errors", "<", 0.001, share=True)]),
        ("errors <= 10", [Term("errors", "<=", 10)]),
        ("load.insert.max < 2 s", [Term("load.insert.max", "<", 2e9)]),
    ],
)
def test_objectives_are_read(text: str, terms: list[Term]) -> None:
    assert list(parse_objective(text).terms) == terms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '"" is not an objective'),
        ("fast", '"fast" is not an objective'),
        ("p99 10ms", '"p99 10ms" is not an objective'),
        ("p99 < 10", 'all.p99 cannot be compared with "10"'),
        ("p99 < 10 apples", 'all.p99 cannot be compared with "10 apples"'),
        ("errors < 1ms", 'errors cannot be compared with "1ms"'),
        ("errors < -1", 'errors cannot be compared with "-1"'),
        ("errors < 0", '"errors < 0" is always false: errors is never negative'),
        ("read.p99 < 0ms", '"read.p99 < 0ms" is always false: read.p99 is never negative'),
        ("cpu.engine < 1s", "cpu.engine is neither a latency nor errors"),
        ("p99 < 1ms and", 'all.p99 cannot be compared with "1ms and"'),
    ],
)
def test_an_invalid_objective_is_refused_with_a_hint(text: str, message: str) -> None:
    error, hint = read_refusal(text)
    assert error == message
    assert hint


@pytest.mark.parametrize(
    "text", ["p99 > 10ms", "p99 >= 10ms", "p99 == 10ms", "errors > 1%", "errors >= 1", "errors = 1"]
)
def test_non_monotone_objective_is_refused(text: str) -> None:
    limit = (f'"{text}" is not a condition that holds at low loads and fails at high loads', LIMIT_HINT)
    assert read_refusal(text) == limit
    assert read_refusal(f"errors == 0 and {text}") == limit


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "=="])
def test_throughput_is_refused_as_an_objective(sign: str) -> None:
    message, hint = read_refusal(f"throughput {sign} 1000")
    assert message.startswith("throughput is not an objective")
    assert hint == "leave the condition out"


def test_the_hints_are_objectives_themselves() -> None:
    for example in ("p99 < 10ms", "read.p99.9 < 5ms", "errors == 0", "errors < 0.1%"):
        assert example in HINT
        assert parse_objective(example).text == example


def test_two_conditions_on_one_figure_are_separate() -> None:
    objective = parse_objective("errors < 10 and errors < 1%")
    assert [term.key for term in objective.terms] == ["errors", "errors%"]
    assert objective.is_met_by({"errors": 9, "errors%": 0.009})
    assert not objective.is_met_by({"errors": 10, "errors%": 0.009})
    assert not objective.is_met_by({"errors": 9, "errors%": 0.01})
    with pytest.raises(KeyError):
        objective.is_met_by({"errors": 9})


@pytest.mark.parametrize(
    ("text", "about"), [("errors < 1%", True), ("p99 < 1s and errors == 0", True), ("p99 < 1s", False)]
)
def test_an_objective_knows_whether_it_is_about_errors(text: str, about: bool) -> None:
    assert parse_objective(text).about_errors is about


def read_refusal(text: str) -> tuple[str, str]:
    """The message and the hint about an invalid objective."""
    try:
        parse_objective(text)
    except ValueError as error:
        message, hint = error.args
        return message, hint
    pytest.fail(f"{text} was read")
