"""Chain logs: records that clients write themselves, along a chain of nodes.

The sequencer only hands out positions (`epoch`, `policy`), a client brings its record from the head of the
chain to its tail (`append`, `walk`), a storage node keeps what comes first to a position (`log_copies` beside
this folder), and the sequencer sees to positions whose client does not (`flight`). Which nodes form a chain,
and when fewer than wanted will do, is in `placing`. Seals, recovery, purge, release and reading are those
of all logs. The numbered rules are in docs/protocol/chain.md.
"""
