"""Stores the reference runtime's jobs: writes objects as rows, commits the rows, and resumes runs."""
