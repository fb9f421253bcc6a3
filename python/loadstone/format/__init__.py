"""How figures and text are written: the only place that scales and rounds."""
