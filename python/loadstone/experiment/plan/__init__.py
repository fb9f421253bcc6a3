"""The plan of an experiment: variants, trials in order, servers, a forecast of time and space, and a description."""
