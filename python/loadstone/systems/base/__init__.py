"""What every system is made of: files, processes, ports, state."""
