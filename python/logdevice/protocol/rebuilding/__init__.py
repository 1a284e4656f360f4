"""Restoring the copies of lost disks and of leaving nodes; the state of the event log."""
