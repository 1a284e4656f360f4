"""Copies on lost or leaving disks are restored elsewhere; what every node knows of such nodes."""
