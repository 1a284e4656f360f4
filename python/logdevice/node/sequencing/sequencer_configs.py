"""Translates configuration and membership into what each sequencer needs to know.

That is: which nodes may store the log, which node should be its sequencer, and the settings that the log's
attributes change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from logdevice.log_attributes import LogAttributes
from logdevice.node.cluster_view import NodeClusterView
from logdevice.node.sequencing.sequencers import SequencedLog
from logdevice.protocol.cluster.placement import nodeset_of, owner_of
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer.copysets import Candidates
from logdevice.protocol.sequencer.events import ChainConfig, SequencerConfig
from logdevice.settings import WriteSettings
from logdevice.types import Location, LogId, NodeId, Replication, Scope


def sequenced_logs(
    configuration: NodeClusterView, alive: Iterable[NodeId], settings: WriteSettings
) -> dict[LogId, SequencedLog]:
    """What the sequencers of all logs of the directory need to know, by log."""
    sequencers = configuration.sequencer_nodes
    present = frozenset(alive)
    alive_sequencers = [node for node in sorted(present) if node in sequencers]
    # A node whose copies are being restored takes new ones only where the other nodes are too few (P56).
    away = frozenset(configuration.storage_nodes) - present | configuration.events.refilled
    return {
        log: _sequenced(
            log, configuration, configuration.directory.attributes(path), alive_sequencers, away, settings
        )
        for path, log in configuration.directory.logs().items()
    }


def usable(storage: Mapping[NodeId, Location], replication: Replication) -> dict[NodeId, Location]:
    """The nodes whose location is known in every scope that the replication names."""
    scopes = [scope for scope, _ in replication.factors if scope is not Scope.NODE]
    return {
        node: location
        for node, location in storage.items()
        if all(location.domain(scope) is not None for scope in scopes)
    }


def nodeset_for(
    log: LogId, configuration: NodeClusterView, attributes: LogAttributes
) -> tuple[tuple[NodeId, ...], Replication]:
    """The nodeset and replication of a log's next epoch.

    It leaves out nodes that are lost or being drained, as long as the other nodes are enough (P55).
    """
    replication = attributes.parsed_replication
    storage = usable(configuration.storage_nodes, replication)
    avoided = configuration.events.avoided
    staying = {node: location for node, location in storage.items() if node not in avoided}
    if can_replicate(staying, replication):
        storage = staying
    return nodeset_of(log, storage, attributes.nodeset_size, replication), replication


def chain_config(attributes: LogAttributes) -> ChainConfig | None:
    """How a chain log is stored; None for a log that is not a chain log."""
    if attributes.replication_mode != "chain":
        return None
    return ChainConfig(chains=attributes.chains, min_copies=attributes.min_copies)


def _sequenced(
    log: LogId,
    configuration: NodeClusterView,
    attributes: LogAttributes,
    alive_sequencers: list[NodeId],
    away: frozenset[NodeId],
    settings: WriteSettings,
) -> SequencedLog:
    nodeset, replication = nodeset_for(log, configuration, attributes)
    storage = usable(configuration.storage_nodes, replication)
    weights = {node: configuration.nodes[node].weight for node in storage}
    chain = chain_config(attributes)
    config = SequencerConfig(
        nodeset=nodeset,
        replication=replication,
        candidates=Candidates(locations=storage, weights=weights),
        extras=attributes.extras,
        sync_leaders=attributes.sync_leaders,
        leaders=attributes.leaders or None,
        # A node that lost its data must not be in a chain: it would store a position a second time.
        away=away if chain is None else away | configuration.events.avoided,
        chain=chain,
    )
    own_settings = replace(
        settings,
        sticky_bytes_max=max(1, attributes.sticky_copyset_bytes_max),
        sticky_ms_max=max(1, attributes.sticky_copyset_ms_max),
        window_records_max=attributes.writes_in_flight_max,
    )
    # A log that no node can store has no owner.
    return SequencedLog(config, own_settings, owner_of(log, alive_sequencers) if nodeset else None)
