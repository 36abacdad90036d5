"""Checkpoints: a run is saved, and taken up again in another process (002 §4)."""
