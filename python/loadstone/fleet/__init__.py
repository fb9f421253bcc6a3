"""Runs engines, and merges the segments of a trial into one result."""
