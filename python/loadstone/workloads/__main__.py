"""`python -m loadstone.workloads` writes the schema of experiment files, and their reference page."""

import sys

from loadstone import workloads
from loadstone.experiment.model import schema

if __name__ == "__main__":
    workloads.register()
    sys.exit(schema.main(sys.argv[1:]))
