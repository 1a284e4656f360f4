"""Reads the ranges of a task, as Arrow batches of the source's schema."""
