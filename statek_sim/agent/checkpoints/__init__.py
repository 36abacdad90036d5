"""Checkpoints: save a run and resume it in another process (harness document §4)."""
