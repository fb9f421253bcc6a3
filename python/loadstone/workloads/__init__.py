"""The kinds of workloads, one file a kind."""

from loadstone.experiment import kind
from loadstone.workloads import dfsio, fio, sort, ycsb


def register() -> None:
    """Makes the kinds known to experiments."""
    kind.register({"ycsb": ycsb.KIND, "dfsio": dfsio.KIND, "fio": fio.KIND, "sort": sort.KIND})
