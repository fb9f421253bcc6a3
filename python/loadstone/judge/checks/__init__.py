"""Checks, one per file: pure functions that find problems in results. Each check has a page in docs/checks/."""
