"""The workload kinds, one file per kind."""

from loadstone.experiment import kind
from loadstone.workloads import command, dfsio, fio, sort, ycsb


def register() -> None:
    """Registers the kinds, so that experiments can use them."""
    kind.register({"ycsb": ycsb.KIND, "dfsio": dfsio.KIND, "fio": fio.KIND, "sort": sort.KIND, "command": command.KIND})
