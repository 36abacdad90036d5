"""Who runs many independent pieces of work: processes of this machine, each under a watchdog."""
