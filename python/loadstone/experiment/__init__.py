"""An experiment: its file, the errors in the file, and the planned trials."""
