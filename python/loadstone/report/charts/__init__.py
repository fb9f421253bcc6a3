"""Charts: one kind a module, each as Vega-Lite specifications drawn up with Altair."""
