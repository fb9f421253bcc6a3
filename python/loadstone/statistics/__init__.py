"""Statistics: pure functions over numbers, without files or prose. The methods are SciPy's; sources are cited."""
