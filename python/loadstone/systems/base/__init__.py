"""What every system needs: files, processes, ports, state."""
