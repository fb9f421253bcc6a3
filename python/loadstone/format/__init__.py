"""Formatting of figures and text: the only place that scales and rounds."""
