"""What an agent remembers (agent document §5): a history made shorter before it overflows and checked for the wire."""
