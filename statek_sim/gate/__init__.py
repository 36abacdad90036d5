"""Whether a preset is good enough: what a team demands of it, judged on scenarios."""
