"""A log that loses more nodes than its replication allows, and consumers that keep positions.

Only recovery is the real machine; sequencer, disks and network are very simple. `make sim HISTORIES=1`.
"""
