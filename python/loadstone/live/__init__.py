"""The live page and the metrics of a running experiment, read from its result folder by a separate process."""
