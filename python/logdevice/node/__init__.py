"""The process of one node: sockets, disks and clocks around the machines.

No decisions are made here. A message is decoded and fed to a machine, the machine's effects are performed,
and the answer is encoded. One event loop per process feeds all machines, so there are no locks. Blocking
work runs on threads, and its result comes back as an event. `assembly.py` puts the parts together.
"""
