"""Observation of the activity on the hosts during a trial."""
