"""Processing of replies: reading, validation of calls, and correction by nudges (agent document §4, §6)."""
