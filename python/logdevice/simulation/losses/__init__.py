"""The cluster with lost disks, drained nodes, and the rebuilding of both.

Everything of `simulation/cluster` happens here, too. Disks are lost only as far as no record can have been
on lost disks alone: so nothing may ever be called lost, whatever else goes wrong meanwhile.
"""
