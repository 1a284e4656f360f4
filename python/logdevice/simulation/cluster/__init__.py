"""The whole cluster: write path and read path.

Every node runs the machines of a storage node and of a sequencer over a disk of its own; clients append,
readers read, and a ledger keeps what was promised to whom. Nothing here is known to the machines.
Same seed, same run, to the last event.
"""
