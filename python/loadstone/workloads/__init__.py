"""The kinds of workloads, one file a kind."""

from loadstone.experiment import kind
from loadstone.workloads import fio, ycsb


def register() -> None:
    """Makes the kinds known to experiments."""
    kind.register({"ycsb": ycsb, "fio": fio})
