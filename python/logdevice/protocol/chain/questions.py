"""What a sequencer is asked about single positions, of a log with chains or without.

Rules P11 and P26 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.chain.messages import Fate, Settle, Settled
from logdevice.protocol.copyset_epoch import CopysetEpoch
from logdevice.protocol.sequencer_events import Effect
from logdevice.protocol.turn import Turn
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Lsn

AnyEpoch = CopysetEpoch | ChainEpoch


def settle(id: int, request: Settle, current: AnyEpoch, released_end: Lsn, turn: Turn[Effect]) -> None:
    lsn, numbering, fate, node = request.lsn, current.numbering, Fate.READ, None
    chain = current if isinstance(current, ChainEpoch) and lsn.epoch == numbering.epoch else None
    if lsn >= numbering.next_lsn:
        fate = Fate.UNISSUED
    elif chain is not None and request.decide:
        chain.settle(id, request)  # P11: it answers, once the position is decided
        return
    elif chain is not None and lsn >= released_end:
        fate, node = Fate.TAIL, chain.chain_of(lsn)[-1]  # P26
    turn.reply(id, Settled(status=AppendStatus.OK, lsn=lsn, fate=fate, node=node))
