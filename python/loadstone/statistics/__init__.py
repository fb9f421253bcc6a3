"""Statistics: pure functions over numbers, no files, no prose. The methods are SciPy's; the choices are cited."""
