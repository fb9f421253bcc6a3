"""Observation: the activity of the hosts during a trial."""
