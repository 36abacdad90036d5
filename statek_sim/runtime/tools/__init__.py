"""Tools and how models see them: declaration, wire text, scope, and futures in arguments."""
