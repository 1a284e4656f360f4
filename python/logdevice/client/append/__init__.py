"""The calls that append: single batches, batching writers, named writers, chain logs."""
