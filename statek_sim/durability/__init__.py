"""Keeps jobs of engine one in a store: writes objects as rows, commits while a runtime runs, and resumes runs."""
