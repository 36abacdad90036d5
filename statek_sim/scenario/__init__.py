"""Scenario files: their format, how they are loaded, and how their contents are checked."""
