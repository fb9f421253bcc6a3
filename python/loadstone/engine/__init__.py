"""The interface to the engine: its location, its capabilities, its trials and its events."""
