"""Limits of an agent job, the settings they come from, and the harness that enforces them."""
