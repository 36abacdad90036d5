"""Guards: what may be said to the model, called, read back and answered (002 §3)."""
