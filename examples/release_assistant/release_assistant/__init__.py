"""An agent that makes releases."""
