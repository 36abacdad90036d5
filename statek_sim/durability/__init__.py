"""Jobs of engine one in a store: live objects as rows, commits while a runtime runs, and resuming."""
