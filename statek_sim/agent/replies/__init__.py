"""What becomes of a reply: read, its calls validated and taken, or corrected by a nudge (004 §4, §6)."""
