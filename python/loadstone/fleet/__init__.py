"""Runs engines on one or more hosts, and merges the segments of a trial into one result."""
