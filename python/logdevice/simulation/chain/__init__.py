"""A whole cluster with a log that clients write themselves, along chains, under the faults of the seed.

Nodes, disks, the epoch store, readers and most faults are those of `simulation/whole`. Added are
clients that run the chain append and die in the middle of it, nodes that are suspected for nothing, and
checks of what is promised about single positions.
"""
