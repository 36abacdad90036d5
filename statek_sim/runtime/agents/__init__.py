"""Agents, the definitions of work that jobs share, and the source of warmup blocks."""
