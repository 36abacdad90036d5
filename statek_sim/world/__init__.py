"""The built-in world of scenarios: a durable work queue, external events, and the tools that use them."""
