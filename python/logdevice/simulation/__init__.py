"""A whole cluster in one process, driven by one seed.

The machines of `logdevice.protocol` run here unchanged. This package simulates time, network, disks, crashes
and the application. A run has two phases: first faults, then everything heals and must converge. Small
checkers (`checkers.py` in `reading/` and `cluster/`) compare what happens with what was promised. The same
seed gives the same run, to the last event.
"""
