"""Tools and how models see them: declaration, documentation, specification, and futures in arguments."""
