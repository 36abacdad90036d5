"""Rescue parsing (agent document §6): finds tool calls that a model wrote as plain text, or rejects them."""
