"""Tools of an agent: definitions, the registry, what a turn offers, arguments."""
