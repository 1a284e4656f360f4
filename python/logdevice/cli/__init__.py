"""The `logdevice` command: the client on a command line, and a local cluster to try things on.

One file per group of commands. A command reads its arguments, calls the client or the local cluster, and
prints the result. It makes no decisions. Output for programs is JSON, one object per line.
"""
