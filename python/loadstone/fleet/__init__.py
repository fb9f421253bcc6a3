"""Where engines run, and how the segments of one trial become one result."""
