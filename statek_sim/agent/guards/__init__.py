"""Guards: checks of messages, calls, results and answers (harness document §3)."""
