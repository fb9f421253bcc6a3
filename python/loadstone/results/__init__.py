"""Results of trials, on disk and in memory, Loadstone's and other tools'."""
