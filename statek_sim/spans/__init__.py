"""A run as spans: agents, steps, requests, tool calls, guards, checkpoints. Built only from the records of a trace."""
