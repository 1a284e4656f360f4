"""Asking and administering: logs, nodes, cuts, backups, keyed logs, single positions, copies."""
