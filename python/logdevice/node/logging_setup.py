"""Logging of a node: one JSON object per line, on stderr or in a file."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Final

from logdevice.errors import InvalidArgumentError

# The attributes that every LogRecord has. Any other attribute was added by the caller, to be logged.
_KNOWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time_ms": int(record.created * 1000),
            "level": record.levelname.lower(),
            "where": record.name.removeprefix("logdevice."),
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _KNOWN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(level: str, path: Path | None) -> None:
    try:
        handler = logging.FileHandler(path) if path else logging.StreamHandler(sys.stderr)
    except OSError as problem:
        raise InvalidArgumentError(f"{path} cannot be written: {problem.strerror}") from None
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
