"""Who talks to whom: sent with every call, checked by whoever is called.

The hello is the one message that every version can read, so it never changes: what is to be said in
addition gets a place of its own. A call from a process of another version or cluster, or meant for
another node (an address that was given to somebody else), is refused before anything is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdevice.errors import RemoteProtocolError, WrongClusterError
from logdevice.types import Location, NodeId

PROTOCOL_VERSION: Final = 2
# The oldest that is still understood; raising it is a decision about rolling upgrades.
PROTOCOL_VERSION_MIN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What one side says about itself, and whom it believes to be talking to."""

    version: int = PROTOCOL_VERSION
    cluster: str  # '' from a client: whichever it is
    caller: NodeId | None = None  # None: a client
    callee: NodeId | None = None  # None: whoever is there
    location: Location = Location()


def checked(theirs: object, mine: Hello) -> Hello:
    """What a caller has said, if it is a hello that lets it talk to the node that says `mine`."""
    node = mine.caller
    assert node is not None, "a server is a node and has an id"
    if not isinstance(theirs, Hello):
        said = "nothing" if theirs is None else type(theirs).__name__
        raise RemoteProtocolError(f"the caller did not say hello but {said}", node=node)
    if not PROTOCOL_VERSION_MIN <= theirs.version <= PROTOCOL_VERSION:
        raise RemoteProtocolError(
            f"the caller speaks version {theirs.version}, this node speaks {PROTOCOL_VERSION_MIN} "
            f"to {PROTOCOL_VERSION}",
            node=node,
        )
    takes_any = theirs.cluster == "" and theirs.caller is None
    if theirs.cluster != mine.cluster and not takes_any:
        raise WrongClusterError(
            f"the caller wants cluster {theirs.cluster!r}, this node belongs to {mine.cluster!r}", node=node
        )
    if theirs.callee not in (None, node):
        raise WrongClusterError(f"the caller wants {theirs.callee}, this is another node", node=node)
    return theirs
