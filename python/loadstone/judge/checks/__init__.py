"""One check per file: a pure function over results that finds what is wrong. Each has a page in docs/checks/."""
