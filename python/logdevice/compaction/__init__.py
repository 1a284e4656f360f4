"""Compaction of keyed logs: finds records that newer ones replace, has them dropped.

`newest.py` decides, `run.py` does it once, with a client like any other, `service.py` again and again in the
background of a node. Rules: docs/protocol/keyed_logs.md.
"""
