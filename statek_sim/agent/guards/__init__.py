"""Guards: checks on messages, calls, results and answers (harness document §3)."""
