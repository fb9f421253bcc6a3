"""The interface to the engine: where it is, what it can do, its trials and events."""
