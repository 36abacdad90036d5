"""Agents, their warmup code, and the conversion of a job's log to request and dialog messages."""
