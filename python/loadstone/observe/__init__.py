"""Observation: what the hosts did while a trial ran."""
