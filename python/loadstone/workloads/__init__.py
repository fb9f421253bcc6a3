"""The kinds of workloads, one file a kind."""

from loadstone.experiment.kind import KINDS
from loadstone.workloads import ycsb


def register() -> None:
    """Makes the kinds known to experiments."""
    KINDS["ycsb"] = ycsb
