"""Inference slots that many agents share: who waits, who is next, who gives way (004 §9)."""
