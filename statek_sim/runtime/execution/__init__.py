"""The execution of jobs: runtime, scheduler, workers, steps, requests, workspaces of blocks, built-in tools."""
