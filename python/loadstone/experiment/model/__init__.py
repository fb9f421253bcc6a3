"""The model of an experiment file (keys, values, properties, templates, points) and documents generated from it."""
