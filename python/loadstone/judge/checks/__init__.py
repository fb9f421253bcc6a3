"""One check per file: a pure function over results that finds problems. Each has a page in docs/checks/."""
