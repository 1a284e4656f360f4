"""A log that loses more than its copies allow, and consumers that keep positions.

Recovery is the real machine; sequencer, disks and network are as simple as can be. `make sim HISTORIES=1`.
"""
