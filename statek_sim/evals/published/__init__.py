"""Counts that others published, and what the simulated models make of the same work."""
