"""The live page and the metrics of a running experiment. A separate process creates both from the result folder."""
