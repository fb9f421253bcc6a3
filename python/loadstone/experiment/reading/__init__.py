"""The file as it is written: YAML with lines, short forms, layers, and the way to the model and back."""
