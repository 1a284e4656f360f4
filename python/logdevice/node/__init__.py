"""The process of one node: sockets, disks and clocks around the machines.

Nothing here decides. Messages are decoded and fed to a machine, its effects are performed, answers are
encoded. One event loop per process feeds all machines, so there are no locks; what blocks runs on
threads and comes back as an event. `assembly.py` puts the parts together.
"""
