"""What an agent remembers (004 §5): a history made shorter before it overflows and checked for the wire."""
