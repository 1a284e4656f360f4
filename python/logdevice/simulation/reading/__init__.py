"""Readers of one log that an oracle writes."""
