"""Single batches, batching writers, named writers, chain logs."""
