"""An experiment: its file, the mistakes in the file, and the planned trials."""
