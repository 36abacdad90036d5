"""Jobs: durable units of work, their shared definitions, their inbox, and the handles of their subtasks."""
