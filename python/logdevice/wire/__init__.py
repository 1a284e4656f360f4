"""Messages as bytes, errors as statuses, and the connections that carry them.

`codec.py` turns messages into bytes and back, `status.py` errors, `hello.py` says who talks to whom, and
`server.py` and `channel.py` carry it all over gRPC. Nothing here decides anything; docs/wire.md has the
layout.
"""

import os

# gRPC reports every connection that ends on standard error, which belongs to the commands people run. It
# looks at this once, when it is loaded; whoever has set it wants to see more.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# What gRPC does by itself when a process forks crashes a third of the children of a process that has used
# its asyncio side. Left alone, they live, and `ForkGuard` tells them what they cannot do.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
