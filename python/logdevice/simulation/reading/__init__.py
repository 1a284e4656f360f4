"""The read path alone: readers of one log that an oracle writes."""
