"""What becomes of a reply: read, its calls validated and taken, or corrected by a nudge (agent document §4, §6)."""
