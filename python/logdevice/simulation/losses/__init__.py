"""The whole cluster again, with disks that are lost, nodes that are drained, and the rebuilding of both.

Everything of `simulation/whole` happens here, too. Disks are lost only as far as no record can have been
on lost disks alone: so nothing may ever be called lost, whatever else goes wrong meanwhile.
"""
