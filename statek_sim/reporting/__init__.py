"""What a run showed, for people and for machines: terminal, Markdown, JSON."""
