"""How long a context fits into the memory of graphics cards: a model's cache of keys and values, token by token."""
