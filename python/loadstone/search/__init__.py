"""Search for saturation: which load to try next, and what the trials so far come to. No I/O."""
