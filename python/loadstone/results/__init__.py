"""Results of trials, on disk and in memory, from Loadstone and from other tools."""
