"""The built-in agent (engine two), which calls tools, and the harness around it."""
