"""One log as a reader sees it: the client read stream and its parts.

`stream` routes events to the parts, which decide one thing each: `connections` when a node is asked,
`senders` what it has promised, `window` order and flow control, `delivery` what the application gets,
`gaps` what the silence of nodes proves, `scd` which nodes are filtered out and when to rewind, `failover`
what to do about trouble, `detector` which nodes are too slow, `epochs` which nodes store an epoch, `health`
what the stream reports about itself. The numbered rules are in docs/protocol/read_path.md.
"""
