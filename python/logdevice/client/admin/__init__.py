"""Logs, nodes, cuts, backups, keyed logs, single positions: asked about and changed."""
