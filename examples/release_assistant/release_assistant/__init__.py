"""An agent that publishes releases."""
