"""One store for everything that survives its process: jobs of engine one, sessions of engine two."""
