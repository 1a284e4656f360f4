"""Counts twice a second what was appended and what is in the table, and notes the faults.

While the demo runs, the samples tell it when to go on. At the end they become the picture.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SAMPLE_S = 0.5
SAY_EVERY_S = 5.0
PATIENCE_S = 240.0  # for anything that must happen; after this time the demo has failed


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    appended: int
    in_table: int

    @property
    def lag(self) -> int:
        return max(0, self.appended - self.in_table)


@dataclass(frozen=True, slots=True)
class Mark:
    """An event in the picture."""

    at_s: float
    text: str
    is_fault: bool


@dataclass
class Watch:
    """Samples from `begin` to the end of its block."""

    appended: Callable[[], int]
    in_table: Callable[[], int]
    check: Callable[[], None]  # raises if waiting any longer is useless
    samples: list[Sample] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    _start_s: float = field(default_factory=time.monotonic)
    _ended: threading.Event = field(default_factory=threading.Event)
    _problem: Exception | None = None

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._start_s

    def say(self, text: str) -> None:
        print(f"{self.now_s:6.1f} s  {text}", flush=True)

    def fault(self, text: str, label: str) -> None:
        self.marks.append(Mark(self.now_s, label, is_fault=True))
        self.say(text)

    def mended(self, text: str, label: str) -> None:
        self.marks.append(Mark(self.now_s, label, is_fault=False))
        self.say(text)

    @contextmanager
    def begun(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.wait(SAMPLE_S):
                # The table first, so that it is never ahead of what was appended.
                in_table = self.in_table()
                self.samples.append(Sample(self.now_s, self.appended(), in_table))
        except Exception as problem:
            self._problem = problem

    def wait_until(self, is_so: Callable[[Sample], bool], what: str) -> None:
        """Waits until a sample satisfies `is_so`; prints the progress from time to time."""
        deadline, said = self.now_s + PATIENCE_S, self.now_s
        while not (self.samples and is_so(self.samples[-1])):
            if self._problem:
                raise self._problem
            self.check()
            if self.now_s > deadline:
                raise TimeoutError(f"this did not happen within {PATIENCE_S:.0f} s: {what}")
            if self.now_s - said > SAY_EVERY_S and self.samples:
                said, last = self.now_s, self.samples[-1]
                self.say(f"  ... {what}: {last.appended} appended, {last.in_table} in the table")
            time.sleep(SAMPLE_S / 2)

    def wait_for_table(self, what: str) -> None:
        """Waits until everything that is appended by now is in the table."""
        wanted = self.appended()
        self.wait_until(lambda sample: sample.in_table >= wanted, what)

    def wait_for_appends(self, count: int, what: str) -> None:
        wanted = self.appended() + count
        self.wait_until(lambda sample: sample.appended >= wanted, what)
