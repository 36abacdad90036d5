"""What an agent remembers (004 §5): a history made shorter before it overflows, checked for the wire, audited."""
