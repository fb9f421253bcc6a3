"""The model of an experiment file (keys, values, properties, templates, points) and the documents generated from it."""
