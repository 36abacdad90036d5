"""Runs scenario suites: selection, runs, comparison with expectations, and failure reports."""
