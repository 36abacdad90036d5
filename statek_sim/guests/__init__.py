"""Harnesses that others wrote, under our scripted LLM, faults, virtual time and trace."""
