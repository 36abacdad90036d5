"""Jobs: durable units of work, their shared definitions, their inbox, and handles for their subtasks."""
