"""Faults: how each kind is injected, verified and lifted, and the thread that runs a fault."""
