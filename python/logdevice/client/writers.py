"""Making writers that collect entries: a part of the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from logdevice.client.appending import Appending
from logdevice.client.batching_writer import BatchingWriter
from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.client.tagged_writer import TaggedWriter
from logdevice.errors import InvalidArgumentError
from logdevice.knobs import changed


class Writers:
    def __init__(self, context: ClientContext, appending: Appending) -> None:
        self._context, self._appending = context, appending

    def writer(
        self, /, log: LogRef, *, name: str | None = None, journal: str | Path | None = None, **settings: Any
    ) -> BatchingWriter:
        """Collects entries into records. `settings` are those of ClientSettings that begin with `writer_`.

        With a name, records are in the log once whatever happens to sequencers, and an earlier process of
        that name is fenced off. With a journal, a file, a process that starts again resolves what the one
        before it had sent and does not know the outcome of.
        """
        context, own = self._context, changed(self._context.settings, settings)
        tagged = None
        if name is not None:
            path = None if journal is None else Path(journal)
            tagged = TaggedWriter(name, log, context, self._appending, own, path)
        elif journal is not None:
            raise InvalidArgumentError("a journal belongs to a writer with a name: give `name`, too")
        writer = BatchingWriter(lambda: context.directory.find(log), self._appending, own, tagged)
        context.in_use.add(writer)
        return writer
