"""The built-in world of scenarios: a durable work queue, external events, and tools that use them."""
