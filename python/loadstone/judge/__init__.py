"""The judge, which decides whether each trial and each comparison can be trusted, and if not, states the reason."""
