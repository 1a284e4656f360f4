"""A whole cluster in one process, driven by one seed.

The machines of `logdevice.protocol` run here unchanged; time, network, disks, crashes and the
application are played by this package. A run has two phases: faults, then heal and converge.
Small checkers (reading/checkers.py) compare what readers get with what was really written.
Same seed, same run, to the last event.
"""
