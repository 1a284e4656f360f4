"""Chain logs: records that clients write themselves, along a chain of nodes.

The sequencer only hands out positions (`epoch`, `policy`). A client brings its record from the head of the
chain to its tail (`append`, `walk`). A storage node keeps what comes first to a position
(`log_state/copies.py`). The sequencer decides positions whose client does not finish (`flight`). `placing`
chooses the nodes of a chain and says when fewer than wanted are enough. Seals, recovery, purge, release and
reading are those of all logs. The numbered rules are in docs/protocol/chain.md.
"""
