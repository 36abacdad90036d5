"""Job limits, the settings that define them, and the harness that enforces them."""
