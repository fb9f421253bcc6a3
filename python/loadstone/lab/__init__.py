"""The lab: runs an experiment's trials, one after the other, and writes down what they come to."""
