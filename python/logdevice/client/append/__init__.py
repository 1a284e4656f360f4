"""Appending: single batches, batching writers, named writers, and chain logs."""
