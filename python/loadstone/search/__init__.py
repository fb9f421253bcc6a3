"""Search for saturation: which load to try next, and the outcome of the trials so far. No I/O."""
