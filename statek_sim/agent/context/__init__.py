"""An agent's context (agent document §5): compacts histories before they overflow, and checks them for HTTP APIs."""
