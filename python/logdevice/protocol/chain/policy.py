"""Chain policy: what the sequencer of a chain log decides about its chains.

It decides which nodes new epochs count on, which chains an epoch has, and when other chains are needed:
because a node of a chain has failed, or because a chain can be longer again. It is a part of the sequencer
for as long as the configuration says that the log is written along chains. It avoids nodes that the sequencer
or the cluster has seen fail. Rules P12 and P14 to P17 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.chain.placing import (
    Avoided,
    choose_chains,
    counted_replication,
    reduced_replication,
    usable_nodes,
)
from logdevice.protocol.effects import Effects
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.events import ChainConfig, Effect, SequencerConfig, SequencerContext
from logdevice.protocol.sequencer.numbering import Numbering
from logdevice.types import Epoch, EpochMetadata, Location, NodeId, Replication

Chains = tuple[tuple[NodeId, ...], ...]


class ChainPolicy:
    def __init__(self, context: SequencerContext, config: SequencerConfig, effects: Effects[Effect]) -> None:
        self.health = Avoided(config.away, context.chain.chain_suspicion_ms)
        self._context = context
        self._config = config  # what is wanted; `possible()` is the part that can be had now
        self._effects = effects

    def follow(self, config: SequencerConfig) -> SequencerConfig:
        """Takes a new configuration; returns the part of it that is possible now."""
        self._config = config
        self.health.away = config.away
        return self.possible()

    @property
    def _chain(self) -> ChainConfig:
        assert self._config.chain is not None, "the log is written along chains"
        return self._config.chain

    def possible(self) -> SequencerConfig:
        """P15, P16: what new epochs count on: fewer nodes if some are missing, down to `min_copies`."""
        config = self._config
        counted = counted_replication(config.replication, len(config.nodeset))
        usable = self._usable(config.nodeset)
        reduced = reduced_replication(counted, usable)
        if reduced is None or can_replicate(usable, counted) or reduced.copies < self._chain.min_copies:
            return replace(config, replication=counted)
        return replace(config, nodeset=tuple(usable), replication=reduced)

    def new_epoch(self, numbering: Numbering, metadata: EpochMetadata) -> ChainEpoch:
        chains = self._chains(metadata.nodeset, metadata.replication, numbering.epoch)
        epoch = ChainEpoch(self._context, numbering, metadata, chains, self.health, self._effects)
        if not chains or len(chains[0]) < self._config.replication.copies:
            epoch.check_length()
        return epoch

    def wants_other_chains(self, current: ChainEpoch) -> bool:
        """P12, P17: whether a chain can replace one with a failed node, or a longer chain is possible."""
        is_some_back, self.health.is_some_back = self.health.is_some_back, False
        if current.chains and not is_some_back and not current.is_broken:
            return False
        possible = self.possible()
        chains = self._chains(possible.nodeset, possible.replication, current.numbering.epoch)
        if not chains:
            return False
        if not current.chains or current.is_broken:
            return True
        return is_some_back and len(chains[0]) > len(current.chains[0])

    def _chains(self, nodeset: tuple[NodeId, ...], counted: Replication, epoch: Epoch) -> Chains:
        usable, wanted = self._usable(nodeset), self._config.replication
        return choose_chains(usable, wanted, counted, self._chain.chains, epoch)

    def _usable(self, nodeset: tuple[NodeId, ...]) -> dict[NodeId, Location]:
        return usable_nodes(nodeset, self._config.candidates, self.health.nodes(self._effects.now_ms))
