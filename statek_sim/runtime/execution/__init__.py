"""Who runs jobs: runtime, scheduler, workers, one step, the request, the workspace of a block, built-in tools."""
