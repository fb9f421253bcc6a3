"""An experiment: its file, the mistakes in it, and the trials that it plans."""
