"""Agents, their warmup code, and the conversion of a job's log to messages of requests and dialogs."""
