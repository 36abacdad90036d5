"""Checkpoints: a run is saved, and taken up again in another process (harness document §4)."""
