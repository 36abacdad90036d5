"""Stores the reference runtime's jobs: writes objects as rows, commits them, and resumes runs."""
