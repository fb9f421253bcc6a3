"""Runs a plan: trials, data sets, servers."""
