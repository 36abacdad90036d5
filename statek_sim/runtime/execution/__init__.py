"""Who runs jobs: the runtime, its scheduler and workers, one step, warmup, the workspace of a block."""
