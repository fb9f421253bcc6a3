"""Statistics: pure functions over numbers, no files, no words. The methods are SciPy's; the choices are cited."""
