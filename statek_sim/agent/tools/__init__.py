"""An agent's tools: definitions, the registry, the tools offered in a turn, arguments."""
