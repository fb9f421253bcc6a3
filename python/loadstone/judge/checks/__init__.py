"""One check per file: a pure function over results that finds faults. Each has a page in docs/checks/."""
