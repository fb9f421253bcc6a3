"""How figures and words are written: the only place that scales and rounds."""
