"""Who is asked next when a task is not solved: the same model again, another strategy, a stronger one, a person."""
