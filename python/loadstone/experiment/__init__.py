"""An experiment: its file, what is wrong with it, and the trials that it comes to."""
