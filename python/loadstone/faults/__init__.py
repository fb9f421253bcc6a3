"""Faults: each kind with its injection, its verification and its lifting, and the thread that runs one."""
