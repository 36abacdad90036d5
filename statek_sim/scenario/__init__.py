"""Scenario files: their format, loading, running and checking what they expect."""
