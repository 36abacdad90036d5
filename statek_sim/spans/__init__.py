"""A run as spans for agents, steps, requests, tool calls, guards and checkpoints, built only from a trace's records."""
