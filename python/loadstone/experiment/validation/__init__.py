"""Checks of the consistency of an experiment, one module per part of the file; they also fill in defaults."""
