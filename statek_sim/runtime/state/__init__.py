"""What a job is made of, without the job: status, counters, log, workspace, futures, handlers, and what is current."""
