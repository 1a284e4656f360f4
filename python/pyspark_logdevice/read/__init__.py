"""What a task does: its ranges of logs as Arrow batches of the source's schema."""
