"""What a job is: definition, status, counters, workspace, the futures it waits for."""
