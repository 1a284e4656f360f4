"""What a task does: records and gaps of its ranges as Arrow batches of the source's schema."""
