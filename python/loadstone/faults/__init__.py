"""Faults: each kind with its injection, verification and lifting, and the thread that runs a fault."""
