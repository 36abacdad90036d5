"""Guards: what may be said to the model, called, read back and answered (harness document §3)."""
