"""What crosses a connection: messages as bytes, errors as statuses, and the connections themselves.

`codec.py` turns messages into bytes and back, `status.py` errors, `hello.py` says who talks to whom, and
`server.py` and `channel.py` carry it all over gRPC. Nothing here decides anything; docs/wire.md has the
layout.
"""
