"""The store of a storage node: records by log and LSN, with one small interface.

A store reads headers only to skip records that other nodes send. It knows nothing of epochs, quorums or
readers.
"""
