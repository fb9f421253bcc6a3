"""Search for saturation: the choice of the next load, and the outcome of the trials so far. No I/O."""
