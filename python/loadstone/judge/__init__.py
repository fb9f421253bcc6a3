"""The judge: says of each trial and of each comparison whether it can be trusted, and why not."""
