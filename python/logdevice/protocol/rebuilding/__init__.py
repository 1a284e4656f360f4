"""Copies of lost or leaving disks, restored on other nodes; the event log summed up."""
