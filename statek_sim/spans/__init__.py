"""A run as spans: agents, steps, requests, tool calls, guards, checkpoints. Built only from a trace's records."""
