"""The cluster with lost disks, drained nodes, and the rebuilding of both.

Everything of `simulation/cluster` happens here, too. Disks are lost only if no record can be on lost disks
alone. So no record may ever be reported as lost, whatever else goes wrong meanwhile.
"""
