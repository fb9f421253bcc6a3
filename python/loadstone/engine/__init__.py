"""The interface to the engine: its location, capabilities, trials and events."""
