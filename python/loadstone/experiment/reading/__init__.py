"""Parsing: YAML with line numbers, short forms, layers, and conversion to the model and back."""
