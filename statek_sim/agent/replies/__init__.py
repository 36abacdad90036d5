"""Processing of a reply: read it, validate and take its calls, or correct it by a nudge (agent document §4, §6)."""
