"""Code that all systems share: files, processes, ports and state."""
