"""One log as a reader sees it: the client read stream and its parts.

`stream` routes events and owns delivery. The parts decide one thing each: `senders` what every
node has promised, `window` order and flow control, `gaps` what silence proves, `scd` who is
filtered out and when to rewind, `detector` who is too slow, `epochs` whose word counts in which
epoch, `health` what a person wants to know. The numbered rules are in docs/protocol/read_path.md.
"""
