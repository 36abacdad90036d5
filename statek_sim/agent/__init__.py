"""The built-in tool-calling agent (engine two) and its harness."""
