"""Builds `report.html`, one self-contained page about a run, from data as JSON and a template."""
