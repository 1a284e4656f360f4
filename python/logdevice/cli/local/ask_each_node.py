"""Asks every node, at its own address, how it sees the cluster. A client would ask only one of them.

Connections are made for the question and closed after it. The answer of a node that does not reply is None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from logdevice.errors import UnavailableError
from logdevice.protocol.io import Request
from logdevice.protocol.messages.service import ClusterView, GetCluster, GetStatus, NodeStatus
from logdevice.settings import WireSettings
from logdevice.types import NodeId

TIMEOUT_MS: Final = 2_000
_WAITING_BYTES_MAX: Final = 1 << 20
Answer = TypeVar("Answer")


def views(cluster: str, addresses: Sequence[str]) -> dict[str, ClusterView | None]:
    """By address: the cluster as that node sees it."""
    return _run(_ask_all(cluster, addresses, GetCluster()))


def statuses(cluster: str, addresses: Sequence[str]) -> dict[str, NodeStatus | None]:
    """By address: what that node says about itself."""
    return _run(ask_for_statuses(cluster, addresses))


async def ask_for_statuses(cluster: str, addresses: Sequence[str]) -> dict[str, NodeStatus | None]:
    return await _ask_all(cluster, addresses, GetStatus())


def is_whole(views: Iterable[ClusterView | None], nodes: Iterable[NodeId]) -> bool:
    """Whether every node answered and sees all of `nodes` alive."""
    wanted = set(nodes)
    return all(
        view is not None and wanted <= {entry.node for entry in view.nodes if entry.is_alive}
        for view in views
    )


def _run(asking: Coroutine[Any, Any, Answer]) -> Answer:
    from logdevice.client.loop_thread import shared

    return shared().run(asking)


async def _ask_all(
    cluster: str, addresses: Sequence[str], request: Request[Answer]
) -> dict[str, Answer | None]:
    answers = await asyncio.gather(*(_ask(cluster, address, request) for address in addresses))
    return dict(zip(addresses, answers, strict=True))


async def _ask(cluster: str, address: str, request: Request[Answer]) -> Answer | None:
    from logdevice.wire.channel import WireChannel
    from logdevice.wire.conversation import Conversation
    from logdevice.wire.hello import Hello

    settings = WireSettings(connect_timeout_ms=TIMEOUT_MS)
    channel = WireChannel(address, Hello(cluster=cluster), settings)
    conversation = Conversation(channel, waiting_bytes_max=_WAITING_BYTES_MAX)
    try:
        return await conversation.ask(request, timeout_ms=TIMEOUT_MS)
    except UnavailableError:
        return None
    finally:
        await conversation.close()
        await channel.close()
