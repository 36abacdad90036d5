"""Context of an agent (agent document §5): compacts a history before it overflows, and checks it for the wire."""
