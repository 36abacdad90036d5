"""A run as spans: agents, steps, requests, tool calls, guards, checkpoints. Made from the records of a trace alone."""
