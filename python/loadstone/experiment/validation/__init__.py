"""What must fit together in an experiment, a part of the file a module; defaults are filled in on the way."""
