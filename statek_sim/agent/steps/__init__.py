"""Step enforcement (004 §6, component 3): the enforcer, and the contract that every enforcer of steps passes."""
