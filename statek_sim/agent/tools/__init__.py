"""Tools of an agent: definitions, the registry, the tools offered in a turn, arguments."""
