"""The calls that ask about logs, nodes, cuts, backups, keyed logs and single positions, and change them."""
