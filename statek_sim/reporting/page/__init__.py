"""Builds `report.html`, a self-contained page about a run, from JSON data and a template."""
