"""What an experiment comes to: variants and trials in their order, servers, a forecast, and all that in words."""
