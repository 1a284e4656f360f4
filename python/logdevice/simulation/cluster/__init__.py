"""The whole cluster: write path and read path.

Every node runs the machines of a storage node and of a sequencer over a disk of its own. Clients append,
readers read, and a ledger keeps everything that was promised to them. The machines know nothing of this
package. The same seed gives the same run, to the last event.
"""
