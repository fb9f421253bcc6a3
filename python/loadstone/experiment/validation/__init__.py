"""Checks the consistency of an experiment, with one module per part of the file, and fills in defaults."""
