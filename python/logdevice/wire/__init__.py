"""Messages as bytes, errors as statuses, and the connections that carry them.

`codec.py` encodes and decodes messages, `status.py` does so with errors, and `hello.py` identifies both ends
of a connection. `server.py` and `channel.py` carry the bytes over gRPC; over that, `conversation.py` sends
requests and answers. `data_server.py` and `data_channel.py` carry read streams over plain sockets, in the
frames of `frames.py`. No decisions are made here; docs/wire.md describes the layout.
"""

import os

# gRPC reports every connection that ends on standard error, where it would mix with the output of commands.
# gRPC reads this variable once, when it is loaded. A value that the user has set is kept.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# gRPC's own fork handling crashes a third of the children of a process that has used its asyncio API. Without
# it the children live, and `ForkGuard` raises an error if they open a connection.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
