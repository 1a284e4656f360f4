"""Compaction of keyed logs: finds out which records newer ones replace, and has them dropped.

`newest.py` decides, `run.py` does it once, with a client like any other, `service.py` again and again in the
background of a node. Rules: docs/protocol/keyed_logs.md.
"""
