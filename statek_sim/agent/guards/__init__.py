"""Guards: what may be sent to the model, called, read back and answered (harness document §3)."""
