"""Whether the reference runtime and the real `statek` package do the same, scenario by scenario."""
