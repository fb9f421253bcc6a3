"""Common code of all systems: files, processes, ports, state."""
