"""Scenario files: their format, how they are loaded, and the checks of their contents."""
