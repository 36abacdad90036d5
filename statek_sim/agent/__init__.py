"""Engine two: the agent that calls tools, and the parts of the harness around it."""
