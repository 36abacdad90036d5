"""Renders reports on runs for a terminal, and as Markdown, JSON, HTML and JUnit XML."""
