"""Scenario files: their format, loading, running, and checks of expectations."""
