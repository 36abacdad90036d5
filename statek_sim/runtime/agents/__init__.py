"""Agents, their warmup code, and the conversion of a job's log into request and dialog messages."""
