"""Jobs: durable units of work, how they share definitions, what reaches them, and the handles of their subtasks."""
