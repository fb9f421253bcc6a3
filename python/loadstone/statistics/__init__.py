"""Statistics: pure functions on numbers, without files or prose. The methods agree with SciPy; sources are cited."""
