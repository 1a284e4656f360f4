"""The cluster with a chain log, which clients write themselves.

Nodes, disks, the epoch store, readers and most faults are those of `simulation/cluster`. This package adds
clients that run the chain append and die in the middle of it, nodes that are suspected without reason, and
checks of the promises about single positions.
"""
