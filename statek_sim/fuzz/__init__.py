"""Looking for what nobody thought of: examples that are drawn, run and kept when their traces are of a new shape."""
