"""The kinds of workloads, one file a kind."""

from loadstone.experiment.kind import KINDS
from loadstone.workloads.ycsb import Ycsb


def register() -> None:
    """Makes the kinds known to experiments."""
    KINDS["ycsb"] = Ycsb()
