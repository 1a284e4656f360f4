"""What a storage node keeps: records by log and LSN, behind one small interface.

A store knows headers well enough to skip records that others send, and nothing of what epochs,
quorums or readers mean.
"""
