"""The product with one rule removed: does a test or the simulator notice?

`table.py` says what is broken and how.
"""
