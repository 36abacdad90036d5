"""Agents, their warmup code, and how a job's log becomes the messages of a request and of a dialog."""
