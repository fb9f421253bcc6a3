"""Cassandra."""
