"""Checks whether this machine is suitable for measuring: takes a snapshot, and applies checks that are pure functions
of the snapshot."""
