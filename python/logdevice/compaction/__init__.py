"""Compaction of keyed logs: finds superseded records, and has storage nodes drop them.

`newest.py` decides which records, `run.py` compacts a log once, through a client like any other, and
`service.py` does that regularly in the background of a node. Rules: docs/protocol/keyed_logs.md.
"""
