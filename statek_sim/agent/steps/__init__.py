"""Step enforcement (004 §6, component 3): the enforcer."""
