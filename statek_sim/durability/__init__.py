"""Keeps jobs of the reference runtime in a store: writes objects as rows, commits them, and resumes runs."""
