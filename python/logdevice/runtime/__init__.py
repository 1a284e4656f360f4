"""Runs machines in a process: the host of a machine, clocks, tasks."""
