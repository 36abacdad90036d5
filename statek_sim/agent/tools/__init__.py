"""What an agent may call: definitions, the registry, what a turn offers, arguments."""
