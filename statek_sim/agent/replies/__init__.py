"""Processes replies: reads them, validates calls, and corrects the model with nudges (agent document §4, §6)."""
