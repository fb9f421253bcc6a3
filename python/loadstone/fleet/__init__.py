"""Where engines run, and how the segments of a trial become one result."""
