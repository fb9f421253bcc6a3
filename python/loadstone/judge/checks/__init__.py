"""One check a file: a pure function over results that says what is wrong with them. Each has a page in docs/checks/."""
