"""The hello: which process calls which. It is sent with every call, and the node that is called checks it.

The hello is the one message that every version can read, so it never changes; anything new is sent beside
it. A call from another version or cluster, or meant for another node (because the address now belongs to a
different one), is refused before anything is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdevice.errors import RemoteProtocolError, WrongClusterError
from logdevice.types import Location, NodeId

PROTOCOL_VERSION: Final = 2
# The oldest version that is still understood. Raising it decides which versions can be upgraded node by node.
PROTOCOL_VERSION_MIN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Which process calls, in which cluster and version, and which node it expects to reach."""

    version: int = PROTOCOL_VERSION
    cluster: str  # '' from a client: any cluster
    caller: NodeId | None = None  # None: a client
    callee: NodeId | None = None  # None: any node
    location: Location = Location()


def checked(theirs: object, mine: Hello) -> Hello:
    """The caller's hello, if the node whose own hello is `mine` may serve this caller.

    Raises RemoteProtocolError if it is not a hello of a version that this node understands, and
    WrongClusterError if it is meant for another cluster or node.
    """
    node = mine.caller
    assert node is not None, "a server is a node and has an id"
    if not isinstance(theirs, Hello):
        said = "nothing" if theirs is None else type(theirs).__name__
        raise RemoteProtocolError(f"the caller sent {said} instead of a hello", node=node)
    if not PROTOCOL_VERSION_MIN <= theirs.version <= PROTOCOL_VERSION:
        raise RemoteProtocolError(
            f"the caller speaks version {theirs.version}, this node speaks {PROTOCOL_VERSION_MIN} "
            f"to {PROTOCOL_VERSION}",
            node=node,
        )
    takes_any = theirs.cluster == "" and theirs.caller is None
    if theirs.cluster != mine.cluster and not takes_any:
        raise WrongClusterError(
            f"the caller wants cluster {theirs.cluster!r}, but this node is in {mine.cluster!r}", node=node
        )
    if theirs.callee not in (None, node):
        raise WrongClusterError(f"the caller wants {theirs.callee}, but this is another node", node=node)
    return theirs
