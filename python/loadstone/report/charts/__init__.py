"""Charts: a module for each kind, which builds Vega-Lite specifications with Altair."""
