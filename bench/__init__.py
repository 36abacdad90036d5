"""Speed of `statek_sim` beside the real statek package: `python -m bench.run`."""
