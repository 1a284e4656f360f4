"""Shows progress in one line that is overwritten. Without a terminal, or with --json, shows nothing."""

from __future__ import annotations

import sys
import time
from typing import Final

from logdevice.cli.output import Output

_WIDTH: Final = 30
_INTERVAL_S: Final = 0.2


class ProgressLine:
    """One line on standard error that is overwritten a few times a second."""

    def __init__(self, output: Output) -> None:
        self._is_shown = sys.stderr.isatty() and not output.is_json
        self._next_s = 0.0

    def show(self, line: str) -> None:
        if self._is_shown and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _INTERVAL_S
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def bar(share: float, left_s: float | None) -> str:
    """A progress bar with the time that is left; `left_s` is None while that is unknown."""
    share = min(1.0, max(0.0, share))
    filled = round(share * _WIDTH)
    left = "" if left_s is None or share == 1 else f", about {left_s:.0f} s left"
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:.0%}{left}"
