"""Mutants: the product with one rule removed, and who notices. `table.py` says what is broken and how."""
