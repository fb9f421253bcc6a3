"""The workload kinds, one file per kind."""

from loadstone.experiment import kind
from loadstone.workloads import cassandra_stress, command, dfsio, fio, sort, statements, ycsb


def register() -> None:
    """Registers the workload kinds, so that experiments can use them."""
    kinds = {
        "ycsb": ycsb.KIND,
        "cassandra-stress": cassandra_stress.KIND,
        "statements": statements.KIND,
        "dfsio": dfsio.KIND,
        "fio": fio.KIND,
        "sort": sort.KIND,
        "command": command.KIND,
    }
    kind.register_kinds(kinds)
