"""Loadstone: which data store, configuration or size handles my load, by how much, and can I trust the answer?"""

__version__ = "0.1.0"
