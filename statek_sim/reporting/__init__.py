"""Renders run reports for a terminal and as Markdown, JSON, HTML and JUnit XML."""
