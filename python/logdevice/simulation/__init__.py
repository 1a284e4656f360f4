"""A whole cluster in one process, driven by one seed.

The machines of `logdevice.protocol` run here unchanged. This package simulates time, network, disks, crashes
and the application. A run has two phases: first faults, then everything heals and must converge. Small
checkers (reading/checkers.py) compare what readers get with what was really written. The same seed gives the
same run, to the last event.
"""
