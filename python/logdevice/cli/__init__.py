"""The `logdevice` command: a shell over the client, and a local cluster to try things on.

One file per group of commands. A command reads its arguments, asks the client or the local cluster, and
shows what came back; it decides nothing. Output for programs is JSON, one object per line.
"""
