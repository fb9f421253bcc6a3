"""The report: one page for a browser, one for a pull request."""
