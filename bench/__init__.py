"""Compares the speed of `statek_sim` with the real statek package: `python -m bench.run`."""
