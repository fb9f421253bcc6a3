"""The live page and the metrics of a running experiment. A separate process reads them from the result folder."""
