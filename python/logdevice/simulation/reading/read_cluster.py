"""What every simulated cluster has for its readers: a network, nodes with their streams, metadata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from logdevice.protocol.messages.read import EpochMetadataIs
from logdevice.protocol.read_stream.events import MetadataUnavailable, ReadConfig
from logdevice.simulation.network import Network
from logdevice.simulation.reading.node import SimulatedNode
from logdevice.simulation.reading.plan import Plan, ReaderPlan
from logdevice.simulation.reading.reader import SimulatedReader
from logdevice.simulation.reading.witness import ReaderWitness
from logdevice.simulation.world import World
from logdevice.types import Epoch, EpochMetadata, MetadataSource, NodeId


class ReadCluster(ABC):
    """The part of a cluster that readers use. It lives as long as the run."""

    witness: ReaderWitness
    nodes: Mapping[NodeId, SimulatedNode]

    def __init__(self, reading: Plan, world: World) -> None:
        self.reading, self.world = reading, world
        self.network = Network(world)
        self.readers: list[SimulatedReader] = []
        self.read_config = ReadConfig(
            nodes={node: place for node, place in reading.locations.items() if node != reading.late_node},
            scd=reading.scd,
            local_scd=reading.local_scd,
        )

    @abstractmethod
    def start(self) -> None: ...

    def askers(self) -> list[str]:
        """The processes that talk to nodes."""
        return [reader.name for reader in self.readers]

    @abstractmethod
    def fetch_metadata(
        self, epoch: Epoch, answer: Callable[[EpochMetadataIs | MetadataUnavailable], None]
    ) -> None: ...

    def start_readers(self) -> None:
        for number, plan in enumerate(self.reading.readers):
            self.world.after(plan.starts_at_ms, partial(self.add_reader, f"reader{number}", plan))

    def add_reader(self, name: str, plan: ReaderPlan) -> SimulatedReader:
        """Starts a reader that must get everything by the end of the run."""
        reader = SimulatedReader(name, plan, self)
        self.readers.append(reader)
        reader.start()
        return reader


def metadata_answer(
    history: Sequence[EpochMetadata], epoch: Epoch, newest: Epoch
) -> EpochMetadataIs | MetadataUnavailable:
    """The entry for an epoch, and the last epoch for which it certainly holds (`newest` if none is newer)."""
    if not history:
        return MetadataUnavailable(epoch)
    entry = [each for each in history if each.first_epoch <= epoch or each is history[0]][-1]
    newer = [each for each in history if each.first_epoch > max(epoch, entry.first_epoch)]
    if newer:
        last = Epoch(newer[0].first_epoch - 1)
        return EpochMetadataIs(epoch, entry, last, MetadataSource.BOUNDED)
    return EpochMetadataIs(epoch, entry, max(entry.first_epoch, newest), MetadataSource.LAST)
