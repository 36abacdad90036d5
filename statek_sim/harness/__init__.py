"""Limits of an agent job, the settings that define them, and the harness that enforces them."""
