"""Runs the trials of a plan, with their data sets and servers."""
