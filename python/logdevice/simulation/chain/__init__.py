"""The cluster with a chain log, which clients write themselves.

Nodes, disks, the epoch store, readers and most faults are those of `simulation/cluster`. Added are
clients that run the chain append and die in the middle of it, nodes that are suspected for nothing, and
checks of what is promised about single positions.
"""
