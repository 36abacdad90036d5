"""Engine two, the built-in agent that calls tools, and the parts of the harness around it."""
