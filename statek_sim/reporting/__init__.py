"""Reports on runs, for people and machines: terminal, Markdown, JSON."""
