"""Agents, what runs in their name, and the error handlers that clean up after their jobs."""
