"""Readers of one log that an oracle writes: the world in which every fault of a reader is played."""
