"""Results: what trials came to, on disk and in memory, our own and other tools'."""
